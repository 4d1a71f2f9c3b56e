import { isDeepStrictEqual } from "node:util";
import type { Settings } from "./effective-settings.ts";

/** The settings in force, for controllers that read them at every step and are notified when they change. */
export interface SettingsStore {
  /** Resolves when there are any. */
  readonly known: Promise<void>;
  /** Only after `known`. */
  current(): Settings;
  latest(): Settings | undefined;
  set(settings: Settings): void;
  onChange(listener: () => void): () => void;
}

export function settingsStore(): SettingsStore {
  const listeners = new Set<() => void>();
  let held: Settings | undefined;
  let markKnown: () => void = () => {};
  const known = new Promise<void>((resolve) => {
    markKnown = resolve;
  });
  return {
    known,
    current() {
      if (!held) throw new Error("the settings are not known yet");
      return held;
    },
    latest: () => held,
    set(settings) {
      if (isDeepStrictEqual(held, settings)) return;
      held = settings;
      markKnown();
      for (const listener of listeners) listener();
    },
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
