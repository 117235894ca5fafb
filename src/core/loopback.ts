// Which hosts are this machine itself: plain http to them meets no other eyes.

/** Whether a host, as a URL names it, is this machine: localhost, 127.x.x.x or ::1. */
export function isLoopback(host: string): boolean {
  return /^(localhost|127\.\d+\.\d+\.\d+|\[?::1\]?)$/i.test(host);
}
