/** What programs say about themselves while they run: structured, one line per event, fields first. */
export interface Log {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
  /** The same log with these fields on every line. */
  child(fields: LogFields): Log;
}

/** An `error` field may hold an Error; the line then has its type, message and stack. */
export type LogFields = Readonly<Record<string, unknown>>;

export type LogLevel = "debug" | "info" | "warn" | "error";

export interface LogOptions {
  level: LogLevel;
  /** `json` for machines, `text` for a person who follows along. */
  format: "json" | "text";
  write(line: string): void;
}

/** For tests, and as the default. */
export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {}, child: () => silentLog };

/** Opens a log. The library behind it is loaded only now, because short commands never log. */
export async function openLog(options: LogOptions): Promise<Log> {
  // By its default: a CommonJS package has its names there in every kind of bundle.
  const { default: pino } = await import("pino");
  const write = options.format === "json" ? options.write : (line: string) => options.write(asText(line));
  const log: Log = pino(
    {
      level: options.level,
      base: null,
      messageKey: "message",
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (level) => ({ level }) },
      serializers: { error: pino.stdSerializers.err },
    },
    { write },
  );
  return log;
}

/** `10:00:00.000 info  listening port=6443`: the line's own fields after its message. */
function asText(line: string): string {
  const { level, time, message, error, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const clock = String(time).slice(11, 23);
  const pairs = Object.entries(fields).map(([name, value]) => ` ${name}=${levelName(value)}`);
  const cause = error === undefined ? "" : ` error=${levelName((error as { message?: unknown }).message ?? error)}`;
  return `${withoutControls(`${clock} ${String(level).padEnd(5)} ${message}${pairs.join("")}${cause}`)}\n`;
}

/** People read it in a terminal: what names and messages of a cluster hold must not control it, nor begin a line. */
function withoutControls(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function levelName(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return /^[^\s"=]+$/.test(text) ? text : JSON.stringify(text);
}
