/** What the environment says about the terminal. Where the cluster is, the module that talks to clusters reads for itself. */
export interface CliConfig {
  color: boolean;
  /** A person is watching: lines may be redrawn. */
  interactive: boolean;
  /** Width of standard error, where progress and errors go; no limit in a pipe. */
  columns: number;
  /** Width of standard output, where results go; no limit in a pipe, so that a row stays a line. */
  outColumns: number;
}

interface Stream {
  isTTY?: boolean;
  columns?: number;
}

const UNKNOWN_COLUMNS = 80;

/** `stream` is standard error, `out` standard output. */
export function readCliConfig(
  environment: Record<string, string | undefined>,
  stream: Stream,
  out: Stream = stream,
): CliConfig {
  const given = (name: string) => (environment[name] ?? "") !== "";
  const isTerminal = ({ isTTY }: Stream) => isTTY === true && environment["TERM"] !== "dumb";
  const interactive = isTerminal(stream) && !given("CI");
  // COLUMNS is what the user says; a pipe has no width whatever is exported.
  const asked = /^[1-9]\d{0,3}$/.test(environment["COLUMNS"] ?? "") ? Number(environment["COLUMNS"]) : undefined;
  const widthOf = (one: Stream) =>
    one.isTTY === true ? (asked ?? (one.columns || UNKNOWN_COLUMNS)) : Number.POSITIVE_INFINITY;
  return Object.freeze({
    color: !given("NO_COLOR") && (given("FORCE_COLOR") || (interactive && isTerminal(out))),
    interactive,
    columns: widthOf(stream),
    outColumns: widthOf(out),
  });
}
