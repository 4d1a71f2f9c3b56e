/** What the environment tells vendorctl about its terminal. Where the cluster is, the room that talks to clusters reads for itself. */
export interface CliConfig {
  color: boolean;
  /** A person is watching: lines may be redrawn. */
  interactive: boolean;
  /** Width to fit live lines in. */
  columns: number;
}

interface Stream {
  isTTY?: boolean;
  columns?: number;
}

export function readCliConfig(environment: Record<string, string | undefined>, stream: Stream): CliConfig {
  const given = (name: string) => (environment[name] ?? "") !== "";
  const interactive = stream.isTTY === true && !given("CI") && environment["TERM"] !== "dumb";
  return Object.freeze({
    color: !given("NO_COLOR") && (given("FORCE_COLOR") || interactive),
    interactive,
    columns: stream.columns ?? 80,
  });
}
