/**
 * Every failure a person can meet has a stable code, one sentence and, where there is one, the fix.
 * Modules declare theirs as a closed set:
 *
 *   export const errors = defineErrors({
 *     PORT_IN_USE: {
 *       means: "A server could not open its port, because another process listens on it.",
 *       example: [6443],
 *       say: (port: number) => `port ${port} is already in use`,
 *       fix: () => "choose another with --port",
 *     },
 *   });
 *   throw errors.PORT_IN_USE(6443);
 */
export class CodedError extends Error {
  readonly code: string;
  readonly fix: string | undefined;
  /** What the process exits with when nothing handles this error. */
  readonly exitCode: number;

  constructor(code: string, sentence: string, options: { fix?: string; exitCode?: number; cause?: unknown } = {}) {
    super(sentence, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "CodedError";
    this.code = code;
    this.fix = options.fix;
    this.exitCode = options.exitCode ?? 1;
  }

  /** The same failure, remembering what caused it. */
  from(cause: unknown): CodedError {
    return new CodedError(this.code, this.message, { fix: this.fix, exitCode: this.exitCode, cause });
  }
}

// biome-ignore lint/suspicious/noExplicitAny: each definition has its own argument list; `any[]` is how TypeScript spells "some list".
type Say = (...args: any[]) => string;

export interface ErrorDefinition<S extends Say = Say> {
  /** What it means and when it comes, in general: for `explain`, which has no case at hand. */
  means: string;
  /** Arguments of `say` and `fix` as a case would have them. */
  example?: Readonly<Parameters<S>>;
  say: S;
  fix?: (...args: Parameters<S>) => string;
  /** Exit status, as sysexits has them (default: 1). */
  exitCode?: number;
}

/** A sentence with arguments needs an example of them. */
type WithExample<S extends Say> = Parameters<S> extends [] ? object : { example: Readonly<Parameters<S>> };

/** Every definition of the modules loaded so far, so that a code can be explained without meeting its error. */
const defined = new Map<string, ErrorDefinition>();

export function errorDefinition(code: string): ErrorDefinition | undefined {
  return defined.get(code);
}

/** The codes of the modules loaded so far. */
export function definedCodes(): string[] {
  return [...defined.keys()];
}

export function defineErrors<const S extends Record<string, Say>>(
  definitions: {
    [Code in keyof S]: ErrorDefinition<S[Code]> & WithExample<S[Code]>;
  },
): { [Code in keyof S]: (...args: Parameters<S[Code]>) => CodedError } {
  const made = Object.entries<ErrorDefinition>(definitions).map(([code, definition]) => {
    defined.set(code, definition);
    const thrower = (...args: unknown[]) =>
      new CodedError(code, definition.say(...args), {
        fix: definition.fix?.(...args),
        exitCode: definition.exitCode,
      });
    return [code, thrower];
  });
  return Object.fromEntries(made) as { [Code in keyof S]: (...args: Parameters<S[Code]>) => CodedError };
}
