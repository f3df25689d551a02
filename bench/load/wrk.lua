-- Sends the requests of a file in turn, and prints the outcome as JSON. In the file, each request follows a
-- line with its length in bytes.
local requests, last = {}, 0

function init(args)
  local file = assert(io.open(args[1], "rb"))
  local length = file:read("*l")
  while length do
    requests[#requests + 1] = file:read(tonumber(length))
    length = file:read("*l")
  end
  file:close()
end

function request()
  last = last % #requests + 1
  return requests[last]
end

function done(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  local line = '{"completed":%d,"seconds":%f,"p50":%f,"p99":%f,"failed":%d}\n'
  local p50, p99 = latency:percentile(50) / 1000, latency:percentile(99) / 1000
  io.write(line:format(summary.requests, summary.duration / 1000000, p50, p99, failed))
end
