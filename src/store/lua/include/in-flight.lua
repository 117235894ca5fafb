-- In flight: task → instants of its requests. `123`: sent; `123:456`: sent again; a `+` behind:
-- confirmed; `e123+`: ended, confirmed or not.

-- Answers the instants of the requests, the oldest first.
local function requestsOf(text)
  local instants = {}
  for digits in string.gmatch(text, '%d+') do instants[#instants + 1] = tonumber(digits) end
  return instants
end
