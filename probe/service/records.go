package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

// turnFrom is how much is told before it is set aside: twice that is on the disk at most, beside the sum of what was before.
const turnFrom = 32 << 20

// A Past is the sum of records that need not be there any more.
type Past struct {
	Last   uint64            `json:"last"` // the number of the last verdict
	Groups []Group           `json:"groups,omitempty"`
	Broken map[string]string `json:"broken,omitempty"` // episodes that go on, as in a record
}

// openTold reads the records. A kill may have come when they had been set aside and no others begun.
func (s *Store) openTold(kept *Kept) error {
	if _, err := os.Lstat(s.path(toldFile)); errors.Is(err, os.ErrNotExist) {
		if err := os.Rename(s.path(asideFile), s.path(toldFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("open state: %w", err)
		}
	}
	if _, err := os.Lstat(s.path(asideFile)); err == nil {
		f, _, err := s.reopen(asideFile, s.record(&kept.Aside), &kept.Spoilt)
		if f != nil {
			f.Close()
		}
		if err != nil {
			return err
		}
	}
	var err error
	if s.told, s.weight, err = s.reopen(toldFile, s.record(&kept.Records), &kept.Spoilt); err != nil {
		return err
	}
	if len(kept.Records) == 0 || kept.Records[0].Past == nil { // the sum cannot be read: those before are needed
		kept.Records, kept.Aside = append(kept.Aside, kept.Records...), nil
	}
	return nil
}

// record reads one into a list.
func (s *Store) record(list *[]Record) func(line []byte) error {
	return func(line []byte) error {
		var r Record
		err := json.Unmarshal(line, &r)
		if err == nil {
			*list = append(*list, r)
			s.next = r.N + 1
		}
		return err
	}
}

// Turn sets the records aside, in place of those that were before, and begins anew with the sum of them all.
func (s *Store) Turn(past Past) error {
	b, err := json.Marshal(Record{N: s.next - 1, At: time.Now(), Past: &past})
	if err != nil {
		return fmt.Errorf("write a record: %w", err)
	}
	s.sync("sync records", s.told)
	if _, err = s.may("set records aside", 0); err == nil {
		err = os.Rename(s.path(toldFile), s.path(asideFile))
	}
	if err != nil {
		return s.fail(fmt.Errorf("set records aside: %w", err))
	}
	err = s.replace(toldFile, func(f *os.File) error { _, err := s.write("sum up records", f, append(b, '\n')); return err })
	if err != nil {
		return err
	}
	s.weight = 0
	return s.again(&s.told, toldFile)
}

// turn sets records aside once there are many.
func (s *Service) turn() error {
	if s.store.weight < s.turnFrom {
		return nil
	}
	past := s.told.past()
	past.Broken = map[string]string{}
	for watch, things := range s.episodes {
		for thing, id := range things {
			past.Broken[joinKey(watch, thing)] = id
		}
	}
	return s.store.Turn(past)
}
