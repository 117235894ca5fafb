-- Asks for one exchange.
-- KEYS: the four of a limiter
-- ARGV: the request, as in limiter-acquire
-- Answers the limiter's view: acquired or denied.
--- @include "limiter-acquire"
return acquirePermit(openLimiter(unpack(KEYS)), unpack(ARGV))
