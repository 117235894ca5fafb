-- Whether a step has the claim of a run that no person has cancelled: only then may the activation
-- before the run go out.
local function hasRunClaim(runKey, claimant)
  local run = redis.call('HMGET', runKey, 'state', 'claimant', 'cancelled')
  return run[1] == 'claimed' and run[2] == claimant and not run[3]
end
