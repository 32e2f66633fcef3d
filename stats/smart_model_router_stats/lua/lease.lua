-- lease_tokens, spend and lease_slots of domain/shared_state/ where the rows are held: these are the hot rows, and writing
-- them optimistically takes ever longer under contention. Numbers are the same doubles; a test compares the rules.
local terms = asked.terms
local boot, ticks, wall = terms.boot, terms.ticks, terms.wall
local CLOCK_ERROR, NO_ROOM, CHUNK, PLENTY = terms.clock_error, terms.no_room, terms.chunk, terms.plenty
local UNDER_WAY, HALF, LEAST_SHARE, SETTLES_SOON = terms.under_way, terms.half, terms.least_share, terms.settles_soon
local SLOT_SECONDS, WAITING_SECONDS, LEFT_FREE = terms.slot_seconds, terms.waiting_seconds, terms.left_free
local KEPT_FOR = terms.kept_for

local function none(value)
  return value == nil or value == cjson.null
end

local function number(value)
  return string.format('%.17g', value)
end

local function finite(value)
  return type(value) == 'number' and value == value and value ~= math.huge and value ~= -math.huge
end

local function chunk_of(capacity)
  local part = capacity * CHUNK
  return math.max(1, part >= 0 and math.floor(part) or math.ceil(part))
end

local function is_plenty(left, capacity)
  return left >= PLENTY * chunk_of(capacity)
end

local function is_integer(value)
  return value == math.floor(value)
end

-- Rows ------------------------------------------------------------------------------------------------------

-- The values of a row, nil where there are none that can be read; and true when it is of a later version of the router.
local function read(id)
  local fine, parts = pcall(cjson.decode, string.match(redis.call('HGET', ROWS, id) or '', '^%d+ (.*)$') or '')
  if not fine or type(parts) ~= 'table' then
    return nil, false
  end
  return parts[1] == 1 and type(parts[2]) == 'table' and parts[2] or nil, type(parts[1]) == 'number' and parts[1] > 1
end

local function bucket_of(columns)
  if not columns then
    return nil
  end
  local row = {boot = columns[2], at = columns[3], level = columns[4], capacity = columns[5], rate = columns[6],
    window = columns[7], resets_at = columns[8], held_until = columns[9]}
  if none(row.window) then
    row.window = nil
  end
  for _, name in ipairs({'at', 'level', 'capacity', 'rate', 'resets_at', 'held_until'}) do
    if not finite(row[name]) then
      return nil
    end
  end
  if row.rate <= 0 or not (row.window == nil or finite(row.window) and row.window > 0) then
    return nil
  end
  return row
end

local function write(id, body, keep, tells)
  writes = writes + 1
  redis.call('HSET', META, 'writes', writes)
  redis.call('ZADD', ORDER, writes, id)
  if tells then
    news = news + 1
    redis.call('HSET', META, 'news', news)
    redis.call('SET', NEWS, epoch .. ' ' .. news)
  end
  redis.call('HSET', ROWS, id, string.format('%d %s', writes, body))
  redis.call('ZADD', EXPIRY, now + keep, id)
end

-- Limits ----------------------------------------------------------------------------------------------------

local function refilled(row, now)
  if row.window == nil then
    local since = math.max(row.at, row.held_until)
    row.level = math.min(row.capacity, row.level + math.max(0, now - since) * row.rate)
  elseif now >= row.resets_at then
    local begun = row.resets_at + row.window * math.floor((now - row.resets_at) / row.window)
    row.level = row.capacity
    row.resets_at = begun + row.window
  end
end

local function same_boot(row, ask)
  if row and row.boot == boot and row.at <= ticks + CLOCK_ERROR then
    return row
  end
  local left = math.min(ask.capacity, ask.most + ask.debt)
  local under_way = ask.ours and 0 or ask.rate * UNDER_WAY
  return {boot = boot, at = ticks, level = ask.window and ask.capacity or math.max(ask.debt, left - under_way),
    capacity = ask.capacity, rate = ask.rate, window = ask.window, resets_at = ticks + ask.resets_in,
    held_until = ticks + ask.held_for}
end

local function heard_of_window(row, ask, now)
  local window, resets_at = ask.window, now + ask.resets_in
  if row.window == nil then
    local most = math.min(ask.capacity, ask.most)
    local others = PLENTY * chunk_of(ask.capacity)
    local known_for = now - row.resets_at
    if known_for <= window then
      row.level = math.min(row.level + ask.back - ask.debt, most) - math.min(known_for * ask.rate, others)
    else
      row.level = most - others
    end
    row.window, row.resets_at = window, resets_at
    return
  end
  local lag = (resets_at - row.resets_at) / row.window
  row.window = window
  if lag < -HALF then
    return
  end
  local level = lag > HALF and ask.capacity or row.level
  row.level = math.min(level + ask.back - ask.debt, ask.capacity, ask.most)
  row.resets_at = resets_at
end

local function heard(row, ask, now)
  local before = row.capacity
  local grown = ask.ours and row.level or row.level + math.max(0, ask.capacity - before)
  row.capacity, row.rate, row.level = ask.capacity, ask.rate, math.min(grown, ask.capacity)
  if ask.held_for ~= 0 then
    row.held_until = math.max(row.held_until, now + ask.held_for)
  end
  if ask.window then
    heard_of_window(row, ask, now)
    return
  end
  local settled = math.min(row.level + ask.back - ask.debt, ask.capacity)
  if row.window ~= nil and not ask.steady then
    row.level = settled
    return
  end
  row.resets_at = row.window == nil and row.resets_at or now
  row.level, row.window = math.min(settled, ask.most), nil
end

local function due_in(row, level, least, now)
  local held = math.max(0, row.held_until - now)
  if row.window ~= nil then
    return math.max(held, row.resets_at - now)
  end
  return held + math.max(0, least - level) / row.rate
end

local function is_news(before, after)
  if not before or before.boot ~= after.boot or before.capacity ~= after.capacity or before.window ~= after.window then
    return true
  end
  return is_plenty(before.level, before.capacity) ~= is_plenty(after.level, after.capacity)
end

local function lease_tokens(id, ask, columns)
  local before = bucket_of(columns)
  local first = before and {boot = before.boot, level = before.level, capacity = before.capacity, window = before.window}
  local row = same_boot(before, ask)
  local now = math.max(ticks, row.at)
  refilled(row, now)
  heard(row, ask, now)
  local level = now < row.held_until and math.min(row.level, 0) or row.level
  local granted = 0
  if ask.want > 0 and level + NO_ROOM >= math.max(ask.least, NO_ROOM) then
    granted = math.min(ask.want, level, math.max(ask.least, level / LEAST_SHARE))
  end
  if is_integer(ask.want) then
    granted = math.floor(granted + NO_ROOM)
  end
  level = level - granted
  local due = granted ~= 0 and 0 or due_in(row, level, ask.least, now)
  row.at, row.level = now, level
  local body = string.format('[1,[%s,%s,%s,%s,%s,%s,%s,%s,%s]]', cjson.encode(ask.key), cjson.encode(row.boot),
    number(row.at), number(row.level), number(row.capacity), number(row.rate), row.window and number(row.window) or 'null',
    number(row.resets_at), number(row.held_until))
  local keep = KEPT_FOR + math.max(0, row.resets_at - now, row.held_until - now)
  write(id, body, keep, not ask.ours and is_news(first, row))
  return {number(granted), number(level), number(due), '0'}
end

-- Budgets ---------------------------------------------------------------------------------------------------

local function remaining(until_, cap)
  local longest = math.min(until_.duration, cap)
  if not (longest >= 0 and longest < math.huge) then
    return 0
  end
  local written, end_, now = until_.wall, until_.wall_until, wall
  if boot ~= '' and until_.boot == boot then
    written, end_, now = until_.boottime, until_.boottime_until, ticks
  end
  local left = now >= written and end_ - now or longest
  return finite(left) and math.min(math.max(0, left), longest) or longest
end

local function after(seconds)
  return {boot = boot, boottime = terms.boottime, boottime_until = terms.boottime + seconds, wall = wall,
    wall_until = wall + seconds, duration = seconds}
end

local function count(value)
  return finite(value) and value or 0
end

local function current(columns, ask)
  local row, left = nil, 0
  if columns then
    local used = math.max(0, count(columns[2]))
    row = {used = used, reserved = math.min(used, math.max(0, count(columns[3]))), until_ = {boot = columns[4],
      boottime = columns[5], boottime_until = columns[6], wall = columns[7], wall_until = columns[8], duration = columns[9]}}
    for _, name in ipairs({'boottime', 'boottime_until', 'wall', 'wall_until', 'duration'}) do
      if type(row.until_[name]) ~= 'number' then
        row.until_[name] = 0 / 0
      end
    end
    left = remaining(row.until_, ask.period)
  end
  if not row or left <= 0 then
    return {used = 0, reserved = 0, until_ = after(ask.period)}
  end
  if not (boot ~= '' and row.until_.boot == boot) then
    row.until_ = after(left)
  end
  return row
end

local function spend(id, ask, columns)
  local row = current(columns, ask)
  local reserved = row.reserved + ask.reserved
  local settled = math.min(ask.settled, reserved)
  local used = math.max(0, row.used + ask.reserved + ask.spent - settled)
  local granted = used < ask.capacity and ask.want or 0
  row.used, row.reserved = used + granted, reserved - settled + granted
  local ends_in, due = remaining(row.until_, ask.period), 0
  if ask.want ~= 0 and granted == 0 then
    due = row.used - row.reserved >= ask.capacity and ends_in or math.min(ends_in, SETTLES_SOON)
  end
  local end_ = row.until_
  local body = string.format('[1,[%s,%s,%s,%s,%s,%s,%s,%s,%s]]', cjson.encode(ask.key), number(row.used),
    number(row.reserved), cjson.encode(end_.boot), number(end_.boottime), number(end_.boottime_until), number(end_.wall),
    number(end_.wall_until), number(end_.duration))
  write(id, body, KEPT_FOR + ends_in, false)
  return {number(granted), number(ask.capacity - row.used), number(due), number(ends_in)}
end

-- Slots -----------------------------------------------------------------------------------------------------

local function alive(row)
  return row.boot == boot and ticks < row.until_ and row.until_ <= ticks + SLOT_SECONDS + CLOCK_ERROR
end

local function waiting(row)
  return row.waits > 0 and alive(row) and row.until_ - ticks >= SLOT_SECONDS - WAITING_SECONDS
end

local function clip(wanted, most)
  return math.max(0, math.min(wanted, most))
end

local function slots_of(columns)
  local rows = {}
  for place = 2, #(columns or {}) do
    local one = columns[place]
    if type(one) == 'table' and type(one[5]) == 'number' and type(one[6]) == 'number' then
      rows[#rows + 1] = {holder = tostring(one[2]), boot = one[3], held = math.max(0, count(one[4])), until_ = one[5],
        waits = one[6]}
    end
  end
  return rows
end

local function lease_slots(id, ask, columns)
  local others, before, held_by_all, others_waiting, part_of = {}, nil, 0, {}, 1
  for _, row in ipairs(slots_of(columns)) do
    if alive(row) then
      held_by_all = held_by_all + row.held
      if row.holder == ask.holder then
        before = row
      else
        others[#others + 1] = row
        if waiting(row) then
          others_waiting[#others_waiting + 1] = row
        end
        if row.held > 0 or waiting(row) then
          part_of = part_of + 1
        end
      end
    end
  end
  local part = math.floor(ask.slots / part_of)
  local due = math.max(1, part)
  local since = before and before.waits > 0 and ask.keeps >= before.held and before.waits or ticks
  local ahead, lacking, held_by_others = 0, 0, 0
  for _, row in ipairs(others_waiting) do
    if row.held < due then
      lacking = lacking + due - row.held
      if row.waits < since then
        ahead = ahead + due - row.held
      end
    end
  end
  for _, row in ipairs(others) do
    held_by_others = held_by_others + row.held
  end
  local left = ask.slots - held_by_others
  local free = left - ask.keeps
  local idle = #others_waiting > 0 and 0 or math.max(0, left - math.ceil(ask.slots * LEFT_FREE))
  local own = clip(math.min(ask.least, due) - ask.keeps, free - ahead)
  local want = math.max(ask.least, math.min(ask.want, idle)) - ask.keeps - own
  local held = ask.keeps + own + clip(want, free - own - lacking)
  if held > ask.keeps then
    since = ticks
  end
  local over = held > left
  local short = lacking > 0
  local row = {holder = ask.holder, boot = boot, held = held, until_ = ticks + SLOT_SECONDS,
    waits = held < ask.least and since or 0}
  local others_wait = #others_waiting > 0 or over

  local had, waited = before and before.held or 0, before ~= nil and waiting(before)
  local tells = waiting(row) ~= waited
  if held > had then
    tells = tells or held - had + held_by_all > ask.slots
  else
    tells = tells or (held < had and others_wait)
  end
  if row.held > 0 or row.waits > 0 then
    others[#others + 1] = row
  end
  local texts = {cjson.encode(ask.key)}
  for _, one in ipairs(others) do
    texts[#texts + 1] = string.format('[%s,%s,%s,%s,%s,%s]', cjson.encode(ask.key), cjson.encode(one.holder),
      cjson.encode(one.boot), number(one.held), number(one.until_), number(one.waits))
  end
  write(id, '[1,[' .. table.concat(texts, ',') .. ']]', KEPT_FOR, tells)
  return {number(held), number(idle), number((short or over) and part or ask.slots), others_wait and '1' or '0'}
end

local grants = {}
if not goes_on or epoch ~= asked.epoch then
  return {string.format('%.17g', now), 0, grants}
end
for place, ask in ipairs(asked.asks) do
  if none(ask.window) then
    ask.window = nil
  end
  local rule = ask.period and spend or ask.holder and lease_slots or lease_tokens
  local columns, is_of_later_version = read(ask.id)
  grants[place] = not is_of_later_version and rule(ask.id, ask, columns)
end
return {string.format('%.17g', now), 1, grants}
