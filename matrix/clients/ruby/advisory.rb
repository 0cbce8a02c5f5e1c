# Guards its work by an advisory lock, as the migrations of Active Record take theirs.
require "json"
require "active_record"

def ms(name, otherwise) = Integer(ENV.fetch(name, otherwise)) / 1000.0

def wait(file)
  2000.times do
    break if file.nil? || file.empty? || File.exist?(file)
    sleep 0.01
  end
end

ActiveRecord::Base.establish_connection(ENV.fetch("DATABASE_URL"))

class Counter < ActiveRecord::Base
  self.table_name = "counter"
end

LOCK = 4_711_004_711
sections = Integer(ENV.fetch("SECTIONS", 10))
attempts = Integer(ENV.fetch("ATTEMPTS", 0))
counts = %w[granted refused renewed unrenewed released unreleased lost wrote].to_h { |name| [name, 0] }
connection = ActiveRecord::Base.connection
File.write(ENV["READY_FILE"], "") if ENV["READY_FILE"]
wait(ENV["START_FILE"])

while counts["granted"] < sections && (attempts.zero? || counts["granted"] + counts["refused"] < attempts)
  unless connection.get_advisory_lock(LOCK)
    counts["refused"] += 1
    sleep ms("RETRY_MS", 5)
    next
  end
  counts["granted"] += 1
  value = Counter.find(1).value
  sleep ms("THINK_MS", 2)
  wait(ENV["WAIT_FILE"])
  Counter.where(id: 1).update_all(value: value + 1)
  counts["wrote"] += 1
  counts[connection.release_advisory_lock(LOCK) ? "released" : "unreleased"] += 1
  sleep 0.002
end
puts counts.to_json
