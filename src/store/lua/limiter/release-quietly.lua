-- Releases permits of exchanges that went well while the service was well.
-- KEYS: the four of a limiter
-- ARGV: rememberMs (retention of a quiet service), leaseMs, then the exchanges
-- Answers the limiter's view.
local rememberMs, leaseMs = unpack(ARGV, 1, 2)
--- @include "limiter-release"
local limiter = openLimiter(unpack(KEYS))
for i = 3, #ARGV do releasePermit(limiter, ARGV[i], leaseMs) end
redis.call('PEXPIRE', limiter.stateKey, rememberMs)
return view(limiter, '', 0)
