/** Kubernetes writes whole seconds in most places. */
export function timestamp(now: number): string {
  return `${new Date(now).toISOString().slice(0, 19)}Z`;
}

/** And microseconds in leases. */
export function microTimestamp(now: number): string {
  return `${new Date(now).toISOString().slice(0, 23)}000Z`;
}
