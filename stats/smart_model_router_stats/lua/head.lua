-- The head of a namespace, which both scripts begin with.
local ROWS, ORDER, EXPIRY, NEWS, META, CALLS, MAKERS, MAKER_ORDER = unpack(KEYS)
local asked = cjson.decode(ARGV[1])
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1e6

-- A count; nil for what is none, whatever another program has written there.
local function counted(text)
  local value = tonumber(text or 'none')
  return value and value >= 0 and value < 2 ^ 53 and value == math.floor(value) and value or nil
end

local info = redis.pcall('INFO', 'replication')
local server = type(info) == 'string' and string.match(info, 'master_replid:(%x+)') or ''
local meta = redis.call('HMGET', META, 'epoch', 'server', 'writes', 'news', 'schema')
local epoch = string.match(meta[1] or '', '^%d+%-.*$')
local writes, news, schema = counted(meta[3]), counted(meta[4]), counted(meta[5])
if schema and schema > asked.schema then
  return redis.error_reply('NEWERSCHEMA ' .. meta[5])
end
-- False on a server that lost its head, or is another one than the one which wrote it.
local goes_on = epoch and meta[2] == server and writes and news and schema
