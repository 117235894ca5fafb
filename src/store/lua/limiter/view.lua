-- Reads the state of a service: throttle, breaker, failures in a row.
-- KEYS: the four of a limiter
-- Answers the limiter's view.
--- @include "limiter"
return view(openLimiter(unpack(KEYS)), '', 0)
