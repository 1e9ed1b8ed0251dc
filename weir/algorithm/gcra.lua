-- One request against Redis: every state read, decided, and all or none written. The same functions as gcra.h and the
-- quota part of calendar.h; gcra_vectors.txt holds both to the same answers.
--
-- Lua's numbers are doubles: integers are exact below 2^53, which is 104 days in nanoseconds. So a duration is one
-- number (windows beyond 104 days are refused before they get here), and an instant is two: whole seconds since 1970
-- and nanoseconds. The clock is Redis's own, read once.
--
-- KEYS   one state each, every state once: a TAT as seconds and nine digits of nanoseconds, or a quota's minutes:used.
--        What is there and no such thing counts as no state: a spend overwrites it, a reset deletes it.
-- ARGV   mode: spend, peek, look (a peek that never writes), refund, reset or undo; for undo then the spend's seconds
--        and microseconds. Then per key:
--        b price window interval             a bucket, in nanoseconds; price -1: the cost exceeds the burst
--        w cost size start end next          a quota; the window by the server's clock and the end of the one after it,
--                                            in minutes since 1970
--        B and W are shadows. A + before the letter begins a new group: groups are charged in order, up to the first
--        that denies; the keys of one group together.
-- Reply  seconds, microseconds, states forgotten; then for every key of the groups charged:
--        allowed, remaining, retry (-1: never), reset
--
-- Leases: one bucket, and a second key that names the leases out: "holder serial end;" each, the end in ms.
-- ARGV   lease b price window interval asks want holder serial servers life: `asks` spends of that price, and up to
--        `want` tokens beyond them for the holder to spend within `life` ms, unless `servers` others hold a lease.
--        Without a second key want is 0.
--        return b price window interval holder serial: that much of that lease was not spent; too late, it is lost.
-- Reply  seconds, microseconds, 1 if others hold too many leases; asks that pass, remaining, retry of the next, reset,
--        tokens leased
local fmod, floor, ceil, max, min, format, sub, match = math.fmod, math.floor, math.ceil, math.max, math.min,
  string.format, string.sub, string.match
local time = redis.call('TIME')
local now_s, now_n = tonumber(time[1]), tonumber(time[2]) * 1000
local second = 1000000000
local mode = ARGV[1]
local forgotten = 0

-- fmod is exact; a / b is rounded, so its floor may be one too many.
local function whole(a, b)
  return (a - fmod(a, b)) / b
end

-- What a key holds, false if there is none; for a list or the like an empty text, which is no state.
local function get(key)
  local found = redis.pcall('GET', key)
  if type(found) ~= 'table' then
    return found
  end
  if string.find(found.err, 'WRONGTYPE', 1, true) then
    return ''
  end
  -- Refused: as the version at hand ends a script for it.
  return redis.call('GET', key)
end

-- Kept until full and not longer. PXAT, because a script may begin before the TIME it reads: counted from its
-- beginning, PX could forget a bucket that is not yet full.
local function keep(key, state, s, n)
  redis.call('SET', key, state, 'PXAT', format('%.0f', s * 1000 + ceil(n / 1000000)))
end

local function keep_tat(key, s, n)
  keep(key, format('%.0f%09.0f', s, n), s, n)
end

-- The instant that lies `duration` after now.
local function after_now(duration)
  local n = now_n + fmod(duration, second)
  local s = now_s + whole(duration, second)
  if n >= second then
    return s + 1, n - second
  end
  return s, n
end

-- s, n less a duration.
local function before(s, n, duration)
  n = n - fmod(duration, second)
  s = s - whole(duration, second)
  if n < 0 then
    return s - 1, n + second
  end
  return s, n
end

-- How far an instant lies ahead of now, at most `most`. Seconds are compared first: the product is exact then.
local function ahead(s, n, most)
  if s - now_s > 9000000 then
    return most
  end
  return max(min((s - now_s) * second + (n - now_n), most), 0)
end

local bucket = {}
local settles = mode ~= 'look' and mode ~= 'reset' and mode ~= 'undo'

function bucket.read(e, at)
  e.price, e.window, e.interval = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local state = get(e.key)
  local s, n = match(state or '', '^(%d+)(%d%d%d%d%d%d%d%d%d)$')
  e.foreign = state and (not s or #state > 19)
  if state and not e.foreign then
    e.s, e.n = tonumber(s), tonumber(n)
    e.owed = ahead(e.s, e.n, e.window)
    -- Further ahead than an empty bucket: the numbers changed or the clock was set back. It counts as empty from here
    -- on, and that is written, or the wait would begin anew with every request. A look leaves it: the numbers may not
    -- be those in force.
    if settles and e.owed == e.window and ahead(e.s, e.n, e.window + 1) > e.window then
      e.s, e.n = after_now(e.window)
      keep_tat(e.key, e.s, e.n)
    end
  else
    e.owed = 0
  end
  return at + 3
end

-- The answer without taking anything.
function bucket.look(e)
  local room = e.window - e.owed
  e.allowed = e.price >= 0 and e.price <= room
  e.remaining = whole(room, e.interval)
  e.retry = 0
  if not e.allowed then
    e.retry = e.price < 0 and -1 or e.price - room
  end
  e.reset = e.owed
end

function bucket.take(e)
  if e.price == 0 then
    return
  end
  local promised = e.owed + e.price
  e.remaining = whole(e.window - promised, e.interval)
  e.reset = promised
  keep_tat(e.key, after_now(promised))
end

function bucket.write(e, s, n)
  if s < now_s or (s == now_s and n <= now_n) then
    redis.call('DEL', e.key)
    e.s, e.n, e.owed = nil, nil, 0
  else
    keep_tat(e.key, s, n)
    e.s, e.n, e.owed = s, n, ahead(s, n, e.window)
  end
end

function bucket.is_full(e)
  return not e.s or e.s < now_s or (e.s == now_s and e.n <= now_n)
end

function bucket.refund(e)
  if e.price > 0 and not bucket.is_full(e) then
    bucket.write(e, before(e.s, e.n, e.price))
  end
  e.price = 0
end

function bucket.reset_state(e)
  if e.foreign or not bucket.is_full(e) then
    forgotten = forgotten + 1
    redis.call('DEL', e.key)
    e.s, e.n, e.owed = nil, nil, 0
  end
end

-- What the refill has given since the spend is not given twice.
function bucket.undo(e, spent_s, spent_n)
  if not e.s then
    return
  end
  local age = 0
  if now_s - spent_s > 9000000 then
    age = e.price
  else
    age = max((now_s - spent_s) * second + (now_n - spent_n), 0)
  end
  if age < e.price then
    bucket.write(e, before(e.s, e.n, e.price - age))
  end
end

local quota = {}

-- The window to charge is picked by this clock: the server's may be a window ahead or behind. An undo has the one that
-- was charged, and a reset needs none: what is kept says when it ends.
function quota.read(e, at)
  e.cost, e.size = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  local first, current, next_end = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local state = get(e.key)
  local ends, used = match(state or '', '^(%d+):(%d+)$')
  e.foreign = state and (not ends or #ends > 8 or #used > 11)
  e.state_end, e.state_used = 0, 0
  if state and not e.foreign then
    e.state_end, e.state_used = tonumber(ends), tonumber(used)
  end
  local minutes = floor(now_s / 60)
  if mode ~= 'undo' and mode ~= 'reset' and (minutes >= next_end or minutes < first - (current - first)) then
    e.failure = 'WEIRCLOCK the clocks of the server and of Redis are more than a window of the quota apart'
    return at + 5
  end
  if minutes < first then
    current, next_end = first, current
  elseif minutes >= current then
    current = next_end
  end
  e.used_end, e.used = current, e.state_used
  if e.state_end < current then
    e.used = 0
  elseif e.state_end == next_end then
    e.used_end = next_end
  end
  e.charged_end = tonumber(ARGV[at + 3])
  return at + 5
end

local function until_minute(minute)
  return max((minute * 60 - now_s) * second - now_n, 0)
end

function quota.write(e, minute, used)
  keep(e.key, format('%.0f:%.0f', minute, used), minute * 60, 0)
  e.state_end, e.state_used = minute, used
end

function quota.look(e)
  e.allowed = e.cost == 0 or (e.cost <= e.size and e.cost <= e.size - e.used)
  e.remaining = max(e.size - e.used, 0)
  e.retry = 0
  if not e.allowed then
    e.retry = e.cost > e.size and -1 or until_minute(e.used_end)
  end
  e.reset = e.used > 0 and until_minute(e.used_end) or 0
end

function quota.take(e)
  if e.cost == 0 then
    return
  end
  e.used = e.used + e.cost
  e.remaining = e.size - e.used
  e.reset = until_minute(e.used_end)
  quota.write(e, e.used_end, e.used)
end

-- Denied after the clock was set back: the state moves to the reading's window, or the denial would last until the
-- clock has caught up.
function quota.settle(e, alone)
  if alone and e.used_end < e.state_end then
    quota.write(e, e.used_end, e.used)
  end
end

function quota.refund(e)
  if e.used > 0 then
    e.used = e.used - min(e.cost, e.used)
    if e.used ~= e.state_used or e.used_end ~= e.state_end then
      quota.write(e, e.used_end, e.used)
    end
  end
  e.cost = 0
end

function quota.reset_state(e)
  if e.foreign then
    forgotten = forgotten + 1
    redis.call('DEL', e.key)
  elseif e.state_used ~= 0 and e.state_end * 60 > now_s then
    forgotten = forgotten + 1
    quota.write(e, e.state_end, 0)
  end
  e.used = 0
end

-- Only while the state is still in the window that was charged.
function quota.undo(e)
  if e.state_end == e.charged_end then
    quota.write(e, e.state_end, e.state_used - min(e.cost, e.state_used))
  end
end

local at, spent_s, spent_n = 2, 0, 0
if mode == 'undo' then
  at, spent_s, spent_n = 4, tonumber(ARGV[2]), tonumber(ARGV[3]) * 1000
end
local leasing = mode == 'lease' or mode == 'return'
local entries = {}
for i = 1, leasing and 1 or #KEYS do
  local letter = ARGV[at]
  local e = {key = KEYS[i], begins = i == 1}
  if sub(letter, 1, 1) == '+' then
    e.begins, letter = true, sub(letter, 2)
  end
  e.shadow = letter == 'B' or letter == 'W'
  e.kind = (letter == 'b' or letter == 'B') and bucket or quota
  at = e.kind.read(e, at + 1)
  if e.failure then
    return redis.error_reply(e.failure)
  end
  entries[i] = e
end

-- All of the group or none; a shadow in its own right. True if nothing that enforces denied.
local function spend_group(first, last)
  local allowed = true
  for i = first, last do
    local e = entries[i]
    e.kind.look(e)
    allowed = allowed and (e.allowed or e.shadow)
  end
  for i = first, last do
    local e = entries[i]
    if e.allowed and (allowed or e.shadow) then
      e.kind.take(e)
    elseif not e.allowed and e.kind == quota then
      quota.settle(e, e.shadow or first == last)
    end
  end
  return allowed
end

if leasing then
  local e = entries[1]
  local milliseconds = now_s * 1000 + floor(now_n / 1000000)

  -- The leases of others that have not ended, how many they are, and the serial of the holder's own. None ends later
  -- than one that begins now: the clock may have been set back.
  local function read_leases(holder, latest)
    local others, count, own = '', 0, nil
    for who, serial, till in string.gmatch(get(KEYS[2]) or '', '(%w+) (%d+) (%d+);') do
      if tonumber(till) > milliseconds then
        if who == holder then
          own = serial
        else
          others = others .. format('%s %s %.0f;', who, serial, min(tonumber(till), latest))
          count = count + 1
        end
      end
    end
    return others, count, own
  end

  if mode == 'return' then
    local holder, serial = ARGV[at], ARGV[at + 1]
    local others, count, own = read_leases(holder, 9007199254740992)
    if own == serial then
      bucket.refund(e)
      if count == 0 then
        redis.call('DEL', KEYS[2])
      else
        redis.call('SET', KEYS[2], others, 'KEEPTTL')
      end
    end
    bucket.look(e)
    return {now_s, now_n / 1000, 0, 0, e.remaining, 0, e.reset, 0}
  end

  local asks, want, holder, serial = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), ARGV[at + 2], ARGV[at + 3]
  local servers, life = tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5])
  local price, room = e.price, e.window - e.owed
  local fit = min(asks, whole(room, price))
  local leased, full = 0, 0
  if fit == asks and want > 0 then
    leased = min(want, whole(room - fit * price, e.interval))
    if leased > 0 then
      local others, count = read_leases(holder, milliseconds + life)
      if count < servers then
        keep(KEYS[2], others .. format('%s %s %.0f;', holder, serial, milliseconds + life), after_now(life * 1000000))
      else
        leased, full = 0, 1
      end
    end
  end
  e.price = fit * price + leased * e.interval
  bucket.look(e)
  if fit > 0 then
    bucket.take(e)
  end
  local retry = max(price - (e.window - e.reset), 0)
  return {now_s, now_n / 1000, full, fit, e.remaining, retry, e.reset, leased}
end

local asked = #entries
if mode == 'spend' then
  local first = 1
  while first <= #entries do
    local last = first
    while last < #entries and not entries[last + 1].begins do
      last = last + 1
    end
    if not spend_group(first, last) then
      asked = last
      break
    end
    first = last + 1
  end
else
  for i = 1, #entries do
    local e = entries[i]
    if mode == 'refund' then
      e.kind.refund(e)
    elseif mode == 'reset' then
      e.kind.reset_state(e)
    elseif mode == 'undo' then
      e.kind.undo(e, spent_s, spent_n)
    end
    e.kind.look(e)
  end
end

local reply = {now_s, now_n / 1000, forgotten}
for i = 1, asked do
  local e, to = entries[i], 4 * i
  reply[to], reply[to + 1], reply[to + 2], reply[to + 3] = e.allowed and 1 or 0, e.remaining, e.retry, e.reset
end
return reply
