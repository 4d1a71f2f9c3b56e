import { errors } from "./errors.ts";

type Env = Readonly<Record<string, string | undefined>>;

export function required(env: Env, name: string, what: string): string {
  const text = env[name];
  if (!text) throw errors.AGENT_ENV_MISSING(name, what);
  return text;
}

export function number(env: Env, name: string, otherwise: number, most: number): number {
  const text = env[name];
  if (!text) return otherwise;
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0 || value > most) {
    throw errors.AGENT_ENV(name, text, `a whole number up to ${most}`);
  }
  return value;
}

/** As people write it in a manifest. */
export function flag(env: Env, name: string, otherwise: boolean): boolean {
  const text = env[name];
  if (!text) return otherwise;
  if (/^(?:true|enabled)$/i.test(text)) return true;
  if (/^(?:false|disabled)$/i.test(text)) return false;
  throw errors.AGENT_ENV(name, text, "true or false");
}

export function oneOf<const T extends string>(env: Env, name: string, values: readonly T[], otherwise: T): T {
  const text = env[name];
  if (!text) return otherwise;
  const found = values.find((value) => value.toLowerCase() === text.toLowerCase());
  if (found === undefined) throw errors.AGENT_ENV(name, text, values.join(" or "));
  return found;
}
