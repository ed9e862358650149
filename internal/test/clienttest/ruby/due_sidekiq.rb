# Takes scheduled jobs and retries of Sidekiq with ZPOPDUE and ZMOVEDUE, and prints what it sees:
#
#   ruby due_sidekiq.rb host:port
#
# The worker is Sidekiq's own program, started here, which loads this file.

require "sidekiq"
require "sidekiq/api"
require "sidekiq/scheduled"
require "tempfile"
require "timeout"

# How long all may take, in seconds: less than the test waits.
PATIENCE = 170

ADDRESS = ENV["QUEUE_ADDRESS"] || ARGV[0]
URL = "redis://#{ADDRESS}/0"
Sidekiq.configure_client { |config| config.redis = {url: URL} }

# Waits for the jobs whose time has come, instead of looking for them every few seconds.
class DueEnq < Sidekiq::Scheduled::Enq
  def enqueue_jobs(sets = Sidekiq::Scheduled::SETS)
    until @done
      _, jobs = Sidekiq.redis { |conn| conn.call("ZPOPDUE", sets.size, *sets, "BLOCK", 1000) }
      jobs&.each { |job, _| Sidekiq::Client.push(Sidekiq.load_json(job)) }
    end
  end
end

# Moves the scheduled jobs of one queue, so that a job is never outside the server.
class MoveEnq < Sidekiq::Scheduled::Enq
  def enqueue_jobs(_sets = nil)
    Sidekiq.redis { |conn| conn.call("ZMOVEDUE", "schedule", "queue:default", "LEFT", "BLOCK", 1000) } until @done
  end
end

# Sidekiq's scheduler starts up to 15 s after the process, so that many processes do not start at once.
class Sidekiq::Scheduled::Poller
  def initial_wait
  end
end

Sidekiq.configure_server do |config|
  config.redis = {url: URL}
  config.options[:scheduled_enq] = Object.const_get(ENV.fetch("QUEUE_ENQ"))
  config.options[:poll_interval_average] = 1 # how long the poller waits after an error
end

class Due
  include Sidekiq::Worker
  sidekiq_options retry: 3

  def perform(name, at = 0, attempts = 1)
    if Sidekiq.redis { |c| c.hincrby("attempts", name, 1) } < attempts
      Sidekiq.redis { |c| c.rpush("failed", name) }
      raise "not yet"
    end
    Sidekiq.redis { |c| c.rpush("ran", (Time.now.to_f < at) ? "#{name} too early" : name) }
  end
end

def say(name, value)
  puts "#{name}: #{value}"
  $stdout.flush
end

def ran(redis, n)
  Array.new(n) { redis.blpop("ran", timeout: PATIENCE)[1] }
end

def schedule(name, after)
  at = Time.now.to_f + after
  Due.perform_at(at, name, at)
end

# The worker's scheduler waits with ZPOPDUE.
def scheduled(redis)
  schedule("tomorrow", 86_400)
  schedule("second", 0.6)
  schedule("first", 0.2)
  say("scheduled", Sidekiq::ScheduledSet.new.size)
  say("ran", ran(redis, 2).join(" "))
  say("left", "schedule=#{Sidekiq::ScheduledSet.new.size} retry=#{Sidekiq::RetrySet.new.size}")
end

# Sidekiq adds some seconds to the time of a retry; an earlier time wakes the scheduler.
def retried(redis)
  Due.perform_async("retried", 0, 3)
  2.times do
    redis.blpop("failed", timeout: PATIENCE)
    _, job, = redis.bzpopmin("retry", timeout: PATIENCE)
    redis.zadd("retry", Time.now.to_f + 0.1, job)
  end
  say("ran", ran(redis, 1).join)
  say("attempts", redis.hget("attempts", "retried"))
  say("polls", redis.info("commandstats").keys.grep(/zrangebyscore|zpopbyscore/i).size)
end

# One command moves a job to its queue.
def moved(redis)
  schedule("last", 0.6)
  schedule("moved", 0.2)
  say("ran", ran(redis, 2).join(" "))
  say("left", Sidekiq::ScheduledSet.new.size)
end

# ZPOPDUE takes the same members as Sidekiq's script, in the same order.
class Taken < Sidekiq::Scheduled::Enq
  public :zpopbyscore
end

def order(redis)
  redis.flushall
  now = Time.now.to_f
  100.times { |i| Due.perform_at(now + 3600, i) }
  members = redis.zrange("schedule", 0, -1)
  scores = [now - 1, now - 0.5, now - 0.25, now + 3600]
  %w[a b].each { |set| redis.zadd(set, members.each_with_index.map { |m, i| [scores[i % 4] - i * 1e-6, m] }) }
  theirs = []
  enq = Taken.new
  while (job = enq.zpopbyscore(redis, keys: ["a"], argv: [Time.now.to_f.to_s]))
    theirs << job
  end
  ours = redis.call("ZPOPDUE", 1, "b", "COUNT", 1000)[1].map(&:first)
  say("order", theirs.size == 75 && ours == theirs)
  say("left", redis.zrange("a", 0, -1) == redis.zrange("b", 0, -1))
end

# Runs Sidekiq with a scheduler while the block runs.
def worker(enq)
  Tempfile.create("sidekiq") do |log|
    env = {"QUEUE_ADDRESS" => ADDRESS, "QUEUE_ENQ" => enq}
    pid = spawn(env, "sidekiq", "-r", File.expand_path(__FILE__), "-c", "1", out: log, err: log, pgroup: true)
    begin
      yield
      Process.kill("TERM", pid)
      Process.wait(pid)
      say("ended", $?.exitstatus)
      pid = nil
    rescue Exception
      log.rewind
      warn log.read
      raise
    ensure
      if pid
        Process.kill("KILL", -pid)
        Process.wait(pid)
      end
    end
  end
end

def main
  redis = Redis.new(url: URL, timeout: PATIENCE)
  Timeout.timeout(PATIENCE) do
    worker("DueEnq") do
      scheduled(redis)
      retried(redis)
    end
    worker("MoveEnq") { moved(redis) }
    order(redis)
  end
end

main if __FILE__ == $PROGRAM_NAME
