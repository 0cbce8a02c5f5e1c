package admin

// Rules are those of the daemon's plan.
type Rules interface{}

// Seen is what the daemon sees of locks, processes and connections.
type Seen interface{}

// Freezing freezes and thaws processes by hand.
type Freezing interface{}

// Stopping ends all that the rules do.
type Stopping interface{}
