import { describe, expect, it } from "vitest";
import { durationMs } from "../../kit/duration.ts";
import { readControllersConfig } from "../config.ts";
import { effectiveSettings } from "./effective-settings.ts";

const { overrides: NOTHING } = readControllersConfig({});

describe("the settings in force", () => {
  it("a controller runs unless the configuration names others and not it", () => {
    expect(effectiveSettings(undefined, NOTHING).controllers.node).toBeDefined();
    expect(effectiveSettings({}, NOTHING).controllers.node).toBeDefined();
    expect(effectiveSettings({ controllers: { node: {} } }, NOTHING).controllers.node).toBeDefined();
    expect(effectiveSettings({ controllers: {} }, NOTHING).controllers).toEqual({});
  });

  it("the environment wins over the resource", () => {
    const { overrides } = readControllersConfig({
      AUTO_HOST_ENDPOINTS: "Disabled",
      ENABLED_CONTROLLERS: "node, namespace",
    });
    const spec = { controllers: { node: { hostEndpoint: { autoCreate: "Enabled" as const } } } };
    expect(effectiveSettings(spec, overrides).controllers.node?.hostEndpoint.autoCreate).toBe("Disabled");
    const off = readControllersConfig({ ENABLED_CONTROLLERS: "serviceaccount" }).overrides;
    expect(effectiveSettings(spec, off).controllers).toEqual({});
  });

  it.each([
    [{ HEALTH_PORT: "0" }, '$HEALTH_PORT is "0", which is not a port'],
    [{ AUTO_HOST_ENDPOINTS: "on" }, '$AUTO_HOST_ENDPOINTS is "on", which is not enabled or disabled'],
    [
      { ENABLED_CONTROLLERS: "policy" },
      '$ENABLED_CONTROLLERS is "policy", which is not one of node, namespace, serviceaccount, loadbalancer',
    ],
  ])("%j is refused", (env, sentence) => expect(() => readControllersConfig(env)).toThrow(sentence));

  it.each([
    ["5m", 300_000],
    ["1h30m", 5_400_000],
    ["1.5s", 1_500],
    ["250ms", 250],
    ["0s", 0],
  ])("%s is %i milliseconds", (text, ms) => expect(durationMs(text)).toBe(ms));
});
