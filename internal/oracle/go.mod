module github.com/lockfaultd/lockfaultd/internal/oracle

go 1.26.8

require (
	github.com/lockfaultd/lockfaultd v0.0.0
	github.com/pganalyze/pg_query_go/v6 v6.2.5
	google.golang.org/protobuf v1.33.0
)

replace github.com/lockfaultd/lockfaultd => ../..
