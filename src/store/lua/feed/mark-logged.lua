-- Notes that all findings are logged.
-- KEYS: status
--- @include "mark-logged"
markLogged(KEYS[1])
