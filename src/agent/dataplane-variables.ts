import { vendorNames } from "../api/names.ts";
import { dataplaneVariable, parseDataplaneVariables } from "../api/protocol/dataplane-variables.ts";
import { type DataplaneConfiguration, dataplaneConfiguration } from "../api/resources/dataplane-configuration.ts";
import { placesOf } from "../api/resources/resource.ts";
import { validateObject } from "../api/validation/validate.ts";
import { errors } from "./errors.ts";
import { typeOf } from "./stored-kinds.ts";

type Env = Readonly<Record<string, string | undefined>>;
type Spec = DataplaneConfiguration["spec"];

/** What the variables set, checked as the resource is. Names that are no field are given back: manifests of older releases have some. */
export function readDataplaneVariables(env: Env): { spec: Spec; unknown: string[] } {
  const { spec, unknown, wrong } = parseDataplaneVariables(env);
  const [first] = wrong;
  if (first) throw errors.AGENT_ENV(first.name, first.text, first.expected);
  refuseWrong(spec, env);
  return { spec, unknown };
}

function refuseWrong(spec: Spec, env: Env): void {
  const { stored } = placesOf(dataplaneConfiguration, vendorNames);
  const object = { ...typeOf(stored), metadata: { name: vendorNames.singleton }, spec };
  const [problem] = validateObject(object, {});
  if (!problem) return;
  const name = dataplaneVariable(/^spec\.(\w+)/.exec(problem.path)?.[1] ?? "");
  throw errors.AGENT_ENV(name, env[name] ?? "", `allowed: ${problem.message}`);
}
