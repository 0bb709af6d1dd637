"""Lua scripts of the Redis driver: one per operation, one round trip each.

Scripts instead of pipelines, for three reasons. A read over four bands must not take more than requested, which
requires the result of the first band before the second is read. A message and its payload are read atomically, so that
nobody acknowledges (and deletes) in between. And a payload that cannot be stored prevents its entry, row by row. The
keys are always the streams of all bands, in order.
"""

from __future__ import annotations

from typing import Final

_ENTRIES: Final = """
local group = ARGV[1]
local found = {}

local function heal(key)
  redis.call('XGROUP', 'CREATE', key, group, '0', 'MKSTREAM')
end

local function is_error(reply, code)
  return type(reply) == 'table' and reply.err and (not code or string.find(reply.err, code, 1, true))
end

local function note(band, deliveries, entry)
  local row = {band, entry[1], deliveries, false}
  for at = 1, #entry[2], 2 do
    if entry[2][at] == 'payload_ref' then
      local payload = redis.pcall('GET', entry[2][at + 1])
      if type(payload) == 'string' then row[4] = payload end
    end
  end
  for at = 1, #entry[2] do row[4 + at] = entry[2][at] end
  found[#found + 1] = row
end
"""
"""Shared by scripts that return entries. A row is band index, entry id, deliveries, payload or nil, then the fields.

A group starts at 0, not at ``$``: messages published before the group existed (the first worker starts late; a flushed
Redis is filled before a worker reads) must be delivered.
"""

PUBLISH: Final = """
local outcomes = {}
for at = 3, #ARGV, 6 do
  local key, ref = KEYS[tonumber(ARGV[at])], ARGV[at + 3]
  local stored = redis.pcall('SET', ref, ARGV[at + 5], 'EX', ARGV[2])
  local added = stored
  if not stored.err then
    added = redis.pcall('XADD', key, 'MAXLEN', '~', ARGV[1], '*', 'job_id', ARGV[at + 1],
      'enqueue_ts', ARGV[at + 2], 'payload_ref', ref, 'priority', ARGV[at + 4])
    if type(added) == 'table' then redis.pcall('DEL', ref) end
  end
  outcomes[#outcomes + 1] = type(added) == 'table' and ('!' .. added.err) or added
end
return outcomes
"""
"""ARGV: maxlen, ttl; then band index, job id, time, payload key, priority and payload per row. Errors start with !"""

READ: Final = (
    _ENTRIES
    + """
local consumer, left, failure = ARGV[2], tonumber(ARGV[3]), nil

local function deliver(band, places)
  places = math.min(places, left)
  if places < 1 then return end
  local ask = {'XREADGROUP', 'GROUP', group, consumer, 'COUNT', places, 'STREAMS', KEYS[band], '>'}
  local reply = redis.pcall(unpack(ask))
  if is_error(reply, 'NOGROUP') then
    heal(KEYS[band])
    reply = redis.pcall(unpack(ask))
  end
  if is_error(reply) then
    failure = reply
  elseif reply then
    for _, entry in ipairs(reply[1][2]) do
      note(band, 1, entry)
      left = left - 1
    end
  end
end

for band = 1, #KEYS do deliver(band, tonumber(ARGV[3 + band])) end
for band = 1, #KEYS do deliver(band, left) end
if #found == 0 and failure then return failure end
return found
"""
)
"""ARGV: group, consumer, limit; then the reserved slots of each band. A broken band does not affect the others."""

AUTOCLAIM: Final = (
    _ENTRIES
    + """
local consumer, idle, left, first = ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local cursors = {}

local function forget_trimmed(key)
  local mine = redis.call('XPENDING', key, group, '-', '+', 1000, consumer)
  for _, row in ipairs(mine) do
    if #redis.call('XRANGE', key, row[1], row[1]) == 0 then redis.call('XACK', key, group, row[1]) end
  end
end

local function reclaim(band)
  local key = KEYS[band]
  cursors[band] = ARGV[5 + band]
  if left < 1 then return end
  local reply = redis.pcall('XAUTOCLAIM', key, group, consumer, idle, cursors[band], 'COUNT', left)
  if is_error(reply, 'NOGROUP') then
    heal(key)
    cursors[band] = '0-0'
    return
  elseif is_error(reply) then
    return
  end
  cursors[band] = reply[1]
  local trimmed = false
  for _, entry in ipairs(reply[2]) do
    if entry and entry[2] then
      local pending = redis.call('XPENDING', key, group, entry[1], entry[1], 1)
      note(band, pending[1][4], entry)
      left = left - 1
    else
      trimmed = true
    end
  end
  if trimmed then forget_trimmed(key) end
end

for step = 0, #KEYS - 1 do reclaim((first + step) % #KEYS + 1) end
return {cursors, found}
"""
)
"""ARGV: group, consumer, idle ms, limit, index of the first band; then each band's cursor.

Redis 6.2 returns nil for an entry that was trimmed while pending and keeps it pending forever; 7 drops it and names it
in a third element, which is not used.
"""

ACK: Final = """
local acknowledged = 0
for at = 2, #ARGV, 3 do
  local key, id, ref = KEYS[tonumber(ARGV[at])], ARGV[at + 1], ARGV[at + 2]
  local gone = redis.pcall('XACK', key, ARGV[1], id)
  if type(gone) == 'number' then acknowledged = acknowledged + gone end
  redis.pcall('XDEL', key, id)
  if ref ~= '' then redis.call('DEL', ref) end
end
return acknowledged
"""
"""ARGV: group; then band index, entry id and payload key per message. Acknowledged entries are deleted, so that the
length of a stream is its depth and memory follows the backlog, not the history."""

RELEASE: Final = """
for at = 3, #ARGV, 2 do
  local key, id = KEYS[tonumber(ARGV[at])], ARGV[at + 1]
  local entry = redis.call('XRANGE', key, id, id)[1]
  if entry then redis.call('XADD', key, 'MAXLEN', '~', ARGV[2], '*', unpack(entry[2])) end
  redis.call('XACK', key, ARGV[1], id)
  redis.call('XDEL', key, id)
end
return 1
"""
"""ARGV: group, maxlen; then band index and entry id per message: put back messages that cannot be used now."""

DELETE_CONSUMERS: Final = """
local leaving = {}
for at = 3, #ARGV do leaving[ARGV[at]] = true end
for _, key in ipairs(KEYS) do
  local consumers = redis.pcall('XINFO', 'CONSUMERS', key, ARGV[1])
  for _, facts in ipairs(consumers.err and {} or consumers) do
    local name, pending, idle = facts[2], facts[4], facts[6]
    if pending == 0 and (leaving[name] or idle > tonumber(ARGV[2])) then
      redis.call('XGROUP', 'DELCONSUMER', key, ARGV[1], name)
    end
  end
end
return 1
"""
"""ARGV: group, idle ms; then the leaving consumers. Consumers with pending messages stay: those would be lost."""
