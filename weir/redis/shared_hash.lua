-- Changes a hash that several servers share, and its version with it, atomically: a reader of a version has seen every
-- change up to it.
--
-- KEYS   the hash
-- ARGV   a mode, a token that is unique to the change, then
--        put      field, value, ...             replaces existing values
--        fill     field, value, ...             sets only fields that do not exist
--        remove   field, ...
--        finish   field, value, seconds, ...    removed if the value is unchanged and Redis's clock is later
-- Reply  the version before, the version now, and how many fields were changed
local hash, mode, token = KEYS[1], ARGV[1], ARGV[2]
local before = redis.call('HGET', hash, 'version') or ''
local changed = 0

if mode == 'put' or mode == 'fill' then
  local command = mode == 'put' and 'HSET' or 'HSETNX'
  for i = 3, #ARGV, 2 do
    local new = redis.call(command, hash, ARGV[i], ARGV[i + 1])
    changed = changed + (mode == 'put' and 1 or new)
  end
elseif mode == 'remove' then
  for i = 3, #ARGV do
    changed = changed + redis.call('HDEL', hash, ARGV[i])
  end
elseif mode == 'finish' then
  local now = tonumber(redis.call('TIME')[1])
  for i = 3, #ARGV, 3 do
    if now > tonumber(ARGV[i + 2]) and redis.call('HGET', hash, ARGV[i]) == ARGV[i + 1] then
      changed = changed + redis.call('HDEL', hash, ARGV[i])
    end
  end
end

local after = before
if changed > 0 then
  local count = tonumber(string.match(before, '^(%d+)%.')) or 0
  after = string.format('%.0f.%s', count + 1, token)
  redis.call('HSET', hash, 'version', after)
end
return {before, after, changed}
