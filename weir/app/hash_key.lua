-- The key of hashed limits, the same for every server on this Redis: the first one's stays.
--
-- KEYS   where it is
-- ARGV   what it becomes unless there is one, the fewest and the most characters that one has
-- Reply  the key, and 1 if it replaced something that was none
local found = redis.pcall('GET', KEYS[1])
if type(found) == 'table' and not string.find(found.err, 'WRONGTYPE', 1, true) then
  return found
end
if type(found) == 'string' and #found >= tonumber(ARGV[2]) and #found <= tonumber(ARGV[3]) then
  return {found, 0}
end
redis.call('SET', KEYS[1], ARGV[1])
return {ARGV[1], found and 1 or 0}
