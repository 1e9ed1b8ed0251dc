-- Questions to Redis: each reads all of its states, decides, and writes all or none. The same functions as gcra.h and
-- the quota part of calendar.h; gcra_vectors.txt holds both to the same answers.
--
-- Lua's numbers are doubles: integers are exact below 2^53, which is 104 days in nanoseconds. So a duration is one
-- number (windows beyond 104 days are refused before they get here), and an instant is two: whole seconds since 1970
-- and nanoseconds. The clock is Redis's own, read once for all questions.
--
-- KEYS   the states of all questions, in order; within a question every state once: a TAT as seconds and nine digits of
--        nanoseconds, or a quota's minutes:used or seconds:used. Anything else found there counts as no state: a spend
--        overwrites it, a reset deletes it.
-- ARGV   one or more questions, either
--        s price window                      about one bucket, in nanoseconds: spend (s), peek (p) or refund (r); price
--                                            -1: the cost exceeds the burst
--        mode keys                           or about several keys: spend, peek, look (a peek that never writes),
--                                            refund, reset, or undo seconds microseconds (of the spend); then per key:
--        b price window                        a bucket
--        w cost size start end next            a quota; the window by the server's clock and the end of the one after
--                                              it, in minutes since 1970
--        f cost size length end                a quota in windows of so many seconds since 1970; the end, in seconds,
--                                              is that of the window to undo
--                                              B, W and F are shadows. Marks before the letter, in this order:
--                                              +  begins a new group: groups are charged in order, up to the first that
--                                                 denies; the keys of one group together
--                                              =  of a shadow or an alternative: belongs to the same limit as the key
--                                                 before it, and both are taken or neither
--                                              ?  an alternative: denies if all alternatives of its group do; if any
--                                                 has room, those that have are taken with the group
--                                              -  takes nothing
-- Reply  one question: its answer. Several: an array of their answers; a text is the error of that question alone.
--        One bucket: its backlog afterwards; denied: -1 - backlog.
--        Several keys: seconds, microseconds, states forgotten; then for every key of the groups charged the backlog
--        the same way, or for a quota the tokens used (denied: -1 - used) and the end of its window.
--
-- Leases: one bucket, and a second key that lists the leases in force: "holder serial end;" each, the end in ms.
-- ARGV   lease b price window interval asks want holder serial servers life: `asks` spends of that price, and up to
--        `want` tokens beyond them for the holder to spend within `life` ms, unless `servers` others hold a lease.
--        Without a second key want is 0.
--        return b price window interval holder serial: that much of that lease was not spent; too late, it is lost.
-- Reply  seconds, microseconds, 1 if others hold too many leases; asks that pass, remaining, retry of the next, reset,
--        tokens leased
local call, find, sub = redis.call, string.find, string.sub
local time = call('TIME')
local now_s, now_n = tonumber(time[1]), time[2] * 1000

-- Redis runs all of this for every call, so whatever a question about one bucket does not need, functions included, is
-- made after its answer.

-- How far a bucket's TAT lies ahead of now, 0 if the bucket is full; and whether the key holds something else. Below
-- 2^53 the difference is exact, above it is more than any window.
local function ahead(key)
  local state = redis.pcall('GET', key)
  if not state then
    return 0
  end
  if type(state) == 'table' then
    if not find(state.err, 'WRONGTYPE', 1, true) then
      call('GET', key)  -- raises the error the way this version of Redis does
    end
    return 0, true
  end
  if #state < 10 or #state > 19 or find(state, '%D') then
    return 0, true
  end
  local owed = (sub(state, 1, -10) - now_s) * 1000000000 + (sub(state, -9) - now_n)
  return owed > 0 and owed or 0
end

-- Writes now + owed. It expires when the bucket is full, at the next millisecond. PXAT, because a script may begin
-- before the TIME it reads: counted from its beginning, PX could forget a bucket that is not yet full.
local function keep(key, owed)
  if owed <= 0 then
    call('DEL', key)
    return
  end
  -- The quotient behind % is rounded, so n may be a little below 0; s and n agree all the same.
  local n = owed % 1000000000
  local s = now_s + (owed - n) / 1000000000
  n = now_n + n
  if n >= 1000000000 then
    s, n = s + 1, n - 1000000000
  elseif n < 0 then
    s, n = s - 1, n + 1000000000
  end
  call('SET', key, string.format('%d%09d', s, n), 'PXAT', s * 1000 + (n - n % 1000000) / 1000000 + 1)
end

-- The question about KEYS[k] that begins at ARGV[at].
local function one_bucket(k, at)
  local key, mode, price, window = KEYS[k], ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local owed = ahead(key)
  -- Further ahead than an empty bucket: the numbers changed or the clock was set back. It counts as empty from here on,
  -- and that is written, or the wait would start over with every question.
  local writes = owed > window
  if writes then
    owed = window
  end
  local denied = false
  if mode == 'r' then
    if price > 0 and owed > 0 then
      owed, writes = owed > price and owed - price or 0, true
    end
  elseif price < 0 or owed + price > window then
    denied = true
  elseif mode == 's' and price > 0 then
    owed, writes = owed + price, true
  end
  if writes then
    keep(key, owed)
  end
  return denied and -1 - owed or owed
end

if #ARGV == 3 * #KEYS then
  if #KEYS == 1 then
    return one_bucket(1, 1)
  end
  local replies = {}
  for k = 1, #KEYS do
    local passed, reply = pcall(one_bucket, k, 3 * k - 2)
    replies[k] = passed and reply or type(reply) == 'table' and reply.err or reply
  end
  return replies
end

local second = 1000000000
local fmod, floor, max, min, format, match = math.fmod, math.floor, math.max, math.min, string.format, string.match

-- fmod is exact; a / b is rounded, so its floor may be one too many.
local function whole(a, b)
  return (a - fmod(a, b)) / b
end

-- Returns a key's value, false if it does not exist, and an empty string for other types, which is not a state.
local function get(key)
  local found = redis.pcall('GET', key)
  if type(found) == 'table' then
    return find(found.err, 'WRONGTYPE', 1, true) and '' or call('GET', key)
  end
  return found
end

local bucket = {}

function bucket.parse(e, at)
  e.price, e.window = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  return at + 2
end

function bucket.read(e)
  e.ahead, e.foreign = ahead(e.key)
  e.owed = min(e.ahead, e.window)
end

-- Decides without taking anything.
function bucket.look(e)
  e.allowed = e.price >= 0 and e.owed + e.price <= e.window
end

function bucket.take(e)
  if e.price == 0 then
    return bucket.settle(e)
  end
  e.owed = e.owed + e.price
  keep(e.key, e.owed)
end

-- As in one_bucket().
function bucket.settle(e)
  if e.ahead > e.window then
    keep(e.key, e.window)
  end
end

function bucket.refund(e)
  if e.price > 0 and e.owed > 0 then
    e.owed = max(e.owed - e.price, 0)
    keep(e.key, e.owed)
  else
    bucket.settle(e)
  end
  e.price = 0
end

-- 1 if there was something to forget.
function bucket.reset(e)
  if not e.foreign and e.ahead == 0 then
    return 0
  end
  call('DEL', e.key)
  e.owed = 0
  return 1
end

-- What the refill has given since the spend is not given twice. A TAT that is too far ahead for exact arithmetic is no
-- longer the one that was charged.
function bucket.undo(e, spent_s, spent_n)
  local back = e.price - max((now_s - spent_s) * second + (now_n - spent_n), 0)
  if back > 0 and e.ahead > 0 and e.ahead < 9000000 * second then
    keep(e.key, e.ahead - back)
  end
end

function bucket.answer(e, reply)
  reply[#reply + 1] = e.allowed and e.owed or -1 - e.owed
end

local quota = {}

function quota.parse(e, at)
  e.cost, e.size = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  if e.unit == 1 then
    e.length, e.current = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
    return at + 4
  end
  e.first, e.current, e.next = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  return at + 5
end

-- The window to charge is picked by this clock: the server's may be a window ahead or behind. An undo has the one that
-- was charged, and a reset needs none: what is kept says when it ends.
function quota.read(e, mode)
  local first, current, following = e.first, e.current, e.next
  local instant = floor(now_s / e.unit)
  if e.length then
    first = now_s - fmod(now_s, e.length)
    current, following = first + e.length, first + 2 * e.length
  end
  local state = get(e.key)
  local ends, used = match(state or '', '^(%d+):(%d+)$')
  e.foreign = state and (not ends or #ends > (e.length and 10 or 8) or #used > 11)
  e.state_end, e.state_used = 0, 0
  if state and not e.foreign then
    e.state_end, e.state_used = tonumber(ends), tonumber(used)
  end
  if mode ~= 'undo' and mode ~= 'reset' and (instant >= following or instant < first - (current - first)) then
    return 'WEIRCLOCK the clocks of the server and of Redis are more than a window of the quota apart'
  end
  if instant < first then
    current, following = first, current
  elseif instant >= current then
    current = following
  end
  e.used_end, e.used = current, e.state_used
  if e.state_end < current then
    e.used = 0
  elseif e.state_end == following then
    e.used_end = following
  end
end

function quota.write(e, ends, used)
  call('SET', e.key, format('%.0f:%.0f', ends, used), 'PXAT', ends * e.unit * 1000)
  e.state_end, e.state_used = ends, used
end

function quota.look(e)
  e.allowed = e.cost == 0 or (e.cost <= e.size and e.cost <= e.size - e.used)
end

function quota.take(e)
  if e.cost == 0 then
    return
  end
  e.used = e.used + e.cost
  quota.write(e, e.used_end, e.used)
end

-- Denied alone after the clock was set back: the state moves to the reading's window, or the denial would last until
-- the clock has caught up.
function quota.settle(e, alone)
  if alone and not e.allowed and e.used_end < e.state_end then
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

function quota.reset(e)
  e.used = 0
  if e.foreign then
    call('DEL', e.key)
  elseif e.state_used ~= 0 and e.state_end * e.unit > now_s then
    quota.write(e, e.state_end, 0)
  else
    return 0
  end
  return 1
end

-- Only while the state is still in the window that was charged.
function quota.undo(e)
  if e.state_end == e.current then
    quota.write(e, e.state_end, e.state_used - min(e.cost, e.state_used))
  end
end

function quota.answer(e, reply)
  reply[#reply + 1] = e.allowed and e.used or -1 - e.used
  reply[#reply + 1] = e.used_end
end

-- The question at ARGV[at] about KEYS[k] and more, and where the next one begins.
local function parse(k, at)
  local question = {mode = ARGV[at]}
  if question.mode == 'undo' then
    question.spent_s, question.spent_n = tonumber(ARGV[at + 1]), ARGV[at + 2] * 1000
    at = at + 2
  end
  local count = tonumber(ARGV[at + 1])
  at = at + 2
  for i = 1, count do
    local joint, alternative, peeks, letter = match(ARGV[at], '^([+=]?)(%??)(%-?)(%a)$')
    local e = {key = KEYS[k], begins = i == 1 or joint == '+', joined = joint == '='}
    e.alternative, e.peeks, e.shadow = alternative ~= '', peeks ~= '', letter < 'a'
    letter = string.lower(letter)
    e.kind, e.unit = letter == 'b' and bucket or quota, letter == 'f' and 1 or 60
    at, k = e.kind.parse(e, at + 1), k + 1
    question[i] = e
  end
  return question, k, at
end

-- The other half of a shadow or an alternative with a rate and a quota, if there is one.
local function other_half(entries, i)
  local following = entries[i + 1]
  return entries[i].joined and entries[i - 1] or following and following.joined and following
end

-- All of the group or none, of its alternatives those that have room; a shadow limit in its own right. True if nothing
-- that enforces denied.
local function spend_group(entries, first, last)
  local allowed, alternatives, room = true, false, false
  for i = first, last do
    local e = entries[i]
    e.kind.look(e)
    allowed = allowed and (e.allowed or e.shadow or e.alternative)
  end
  for i = first, last do
    local e, other = entries[i], other_half(entries, i)
    alternatives = alternatives or e.alternative
    room = room or e.alternative and e.allowed and (not other or other.allowed)
  end
  allowed = allowed and (room or not alternatives)
  for i = first, last do
    local e, other = entries[i], other_half(entries, i)
    if e.allowed and (allowed or e.shadow) and (not other or other.allowed) and not e.peeks then
      e.kind.take(e)
    else
      e.kind.settle(e, e.shadow and not other or first == last)
    end
  end
  return allowed
end

-- How many entries were asked.
local function spend(entries)
  local first = 1
  while first <= #entries do
    local last = first
    while last < #entries and not entries[last + 1].begins do
      last = last + 1
    end
    if not spend_group(entries, first, last) then
      return last
    end
    first = last + 1
  end
  return #entries
end

local function decide(question)
  local mode, forgotten, asked = question.mode, 0, #question
  for i = 1, #question do
    local failure = question[i].kind.read(question[i], mode)
    if failure then
      return redis.error_reply(failure)
    end
  end
  if mode == 'spend' then
    asked = spend(question)
  end
  local reply = {now_s, now_n / 1000, 0}
  for i = 1, asked do
    local e = question[i]
    if mode == 'peek' then
      e.kind.settle(e, false)
    elseif mode == 'refund' then
      e.kind.refund(e)
    elseif mode == 'reset' then
      forgotten = forgotten + e.kind.reset(e)
    elseif mode == 'undo' then
      e.kind.undo(e, question.spent_s, question.spent_n)
    end
    if mode ~= 'spend' then
      e.kind.look(e)
    end
    e.kind.answer(e, reply)
  end
  reply[3] = forgotten
  return reply
end

local function lease(mode)
  local e = {key = KEYS[1]}
  local at = bucket.parse(e, 3)
  local interval = tonumber(ARGV[at])
  bucket.read(e)
  at = at + 1
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
        call('DEL', KEYS[2])
      else
        call('SET', KEYS[2], others, 'KEEPTTL')
      end
    end
    return {now_s, now_n / 1000, 0, 0, whole(e.window - e.owed, interval), 0, e.owed, 0}
  end

  local asks, want, holder, serial = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), ARGV[at + 2], ARGV[at + 3]
  local servers, life = tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5])
  local price, room = e.price, e.window - e.owed
  local fit = min(asks, whole(room, price))
  local leased, full = 0, 0
  if fit == asks and want > 0 then
    leased = min(want, whole(room - fit * price, interval))
    if leased > 0 then
      local others, count = read_leases(holder, milliseconds + life)
      if count < servers then
        local till = milliseconds + life
        call('SET', KEYS[2], others .. format('%s %s %.0f;', holder, serial, till), 'PXAT', till + 1)
      else
        leased, full = 0, 1
      end
    end
  end
  if fit == 0 then
    bucket.settle(e)
  else
    e.price = fit * price + leased * interval
    bucket.take(e)
  end
  room = e.window - e.owed
  return {now_s, now_n / 1000, full, fit, whole(room, interval), max(price - room, 0), e.owed, leased}
end

if ARGV[1] == 'lease' or ARGV[1] == 'return' then
  return lease(ARGV[1])
end

-- Each fails alone.
local replies, k, at = {}, 1, 1
while k <= #KEYS do
  local passed, reply, question
  if #ARGV[at] == 1 then
    passed, reply = pcall(one_bucket, k, at)
    k, at = k + 1, at + 3
  else
    question, k, at = parse(k, at)
    if k > #KEYS and #replies == 0 then
      return decide(question)
    end
    passed, reply = pcall(decide, question)
  end
  replies[#replies + 1] = type(reply) == 'table' and reply.err or reply
end
return replies
