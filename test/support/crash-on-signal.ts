// Loaded into a `syncline` process before anything else (`--import`): on SIGUSR2 it fails as a
// library with a mistake would, with an error that holds everything it can get. CRASH_MESSAGE is
// what it says, CRASH_AS is `exception` or `rejection`.
process.on("SIGUSR2", () => {
  const message = process.env["CRASH_MESSAGE"] ?? "";
  const error = Object.assign(new TypeError(`the internal throw: ${message}`, { cause: new Error(message) }), {
    command: { name: "auth", args: [message] },
    options: { headers: { authorization: message } },
    response: { body: message },
  });
  if (process.env["CRASH_AS"] === "rejection") void Promise.reject(error);
  else throw error;
});
