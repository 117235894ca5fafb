-- Records an outcome, its place, its policy's state and day, and its event. Not: start, lease,
-- poll, chain, troubles, last success, unpublished.
-- KEYS: outcomes, index, failed tasks, outcomes-kept, policy state, changed policies, month of
-- the day summary, event stream
-- ARGV: task, outcome, placeMs, policy, '1' when doing it over may help, finishedMs; for the
-- policy's state: target (JSON), weight, figures of a success, last outcome (JSON), rank of its
-- trouble; the change of the day's summary; '1' to write an event for the notifier
-- Answers 1 when it did, 0 when the task has one.
local outcomesKey, indexKey, failedKey, keptKey, stateKey, changedKey, daysKey, streamKey = unpack(KEYS)
local task, outcome, placeMs, policy, isReplayable, finishedMs = unpack(ARGV, 1, 6)
local dayChange, isNotified = unpack(ARGV, 12, 13)
--- @include "events"
--- @include "policy-state"
--- @include "day-summary"
if redis.call('HSETNX', outcomesKey, task, outcome) == 0 then return 0 end
-- The notifier reports a broken stream. It must not change how a task ends.
if isNotified == '1' then pcall(addEvent, streamKey, 'o', outcome) end
redis.call('HSETNX', keptKey, policy, '')
redis.call('ZADD', indexKey, placeMs, task)
if isReplayable == '1' then redis.call('ZADD', failedKey, placeMs, task) end
notePolicyState(stateKey, finishedMs, unpack(ARGV, 7, 11))
noteChanged(changedKey, policy)
addToDay(daysKey, dayChange)
return 1
