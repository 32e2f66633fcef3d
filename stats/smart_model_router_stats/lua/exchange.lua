-- Writes rows if the rows that were read are still the same, and returns what changed since the caller last looked.
-- No rule is in here: which row may take the place of another is decided by the caller.
local CHUNK, PURGED = 1000, 20

-- A server that lost writes, another server, or one whose clock stepped begins a new epoch.
local is_read_only = not (asked.writes or asked.calls or asked.makers)
if not goes_on or (asked.epoch == epoch and (asked.stepped or asked.since > writes)) then
  local number = tonumber(epoch and string.match(epoch, '^%d+') or 0)
  local known = tonumber(string.match(asked.epoch, '^%d+') or 0)
  epoch = string.format('%d-%s', math.max(number, known) + 1, asked.fresh)
  writes, news = writes or tonumber(redis.call('ZREVRANGE', ORDER, 0, 0, 'WITHSCORES')[2] or 0), news or 0
  redis.call('HSET', META, 'epoch', epoch, 'server', server, 'writes', writes, 'news', news, 'schema', asked.schema)
  redis.call('SET', NEWS, epoch .. ' ' .. news)
end

local function revision(id)
  local found = redis.call('HGET', ROWS, id)
  return found and tonumber(string.match(found, '^%d+')) or 0
end

local done = asked.epoch == epoch or is_read_only
if done and asked.news then
  done = asked.news == news
end
for id, rev in pairs(asked.expected or {}) do
  done = done and revision(id) == rev
end

if done and not is_read_only then
  for _, put in ipairs(asked.writes or {}) do
    writes = writes + 1
    redis.call('HSET', ROWS, put[1], string.format('%d %s', writes, put[2]))
    redis.call('ZADD', ORDER, writes, put[1])
    if put[3] ~= cjson.null then
      redis.call('ZADD', EXPIRY, now + put[3], put[1])
    end
  end
  if asked.tells then
    news = news + 1
    redis.call('SET', NEWS, epoch .. ' ' .. news)
  end
  redis.call('HSET', META, 'writes', writes, 'news', news)
  for _, call in ipairs(asked.calls or {}) do
    local lines = {}
    for line in string.gmatch(redis.call('HGET', CALLS, call[1]) or '', '[^\n]+') do
      lines[#lines + 1] = line
    end
    lines[#lines + 1] = call[2]
    local first = math.max(1, #lines - asked.calls_kept + 1)
    redis.call('HSET', CALLS, call[1], table.concat(lines, '\n', first))
    if call[3] then
      redis.call('HSET', CALLS, '\n' .. call[1], call[2])
    end
    redis.call('EXPIRE', CALLS, asked.kept_for)
  end
  for _, maker in ipairs(asked.makers or {}) do
    redis.call('HSET', MAKERS, maker[1], maker[2])
    redis.call('ZADD', MAKER_ORDER, maker[3], maker[1])
  end
  if asked.makers then
    local gone = redis.call('ZRANGEBYSCORE', MAKER_ORDER, '-inf', '(' .. string.format('%.17g', asked.makers_since), 'LIMIT', 0, CHUNK)
    local over = redis.call('ZCARD', MAKER_ORDER) - #gone - asked.makers_kept
    if over > 0 then
      for _, thing in ipairs(redis.call('ZRANGE', MAKER_ORDER, #gone, #gone + math.min(over, CHUNK) - 1)) do
        gone[#gone + 1] = thing
      end
    end
    for _, thing in ipairs(gone) do
      redis.call('HDEL', MAKERS, thing)
      redis.call('ZREM', MAKER_ORDER, thing)
    end
  end
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', EXPIRY, '-inf', now, 'LIMIT', 0, PURGED)) do
    redis.call('HDEL', ROWS, id)
    redis.call('ZREM', ORDER, id)
    redis.call('ZREM', EXPIRY, id)
  end
end

local full = asked.epoch ~= epoch or asked.since < 0
local found = {}
if full then
  found = redis.call('HGETALL', ROWS)
elseif asked.since < writes then
  local ids = redis.call('ZRANGEBYSCORE', ORDER, '(' .. asked.since, '+inf')
  for first = 1, #ids, CHUNK do
    local part = {unpack(ids, first, math.min(#ids, first + CHUNK - 1))}
    local texts = redis.call('HMGET', ROWS, unpack(part))
    for place, id in ipairs(part) do
      if texts[place] then
        found[#found + 1] = id
        found[#found + 1] = texts[place]
      end
    end
  end
end
return {done and 1 or 0, epoch, news, writes, string.format('%.17g', now), full and 1 or 0, found}
