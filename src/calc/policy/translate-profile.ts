import type { Profile as ProfileResource } from "../../api/resources/profile.ts";
import type { ModelProblem, Profile } from "../model.ts";
import { SetCollector, type SetSource } from "./set-source.ts";
import { ruleId, translateRules } from "./translate-rule.ts";
import { problem } from "./untranslatable.ts";

export interface TranslatedProfile {
  profile: Profile;
  sets: ReadonlyMap<string, SetSource>;
}

export function translateProfile(object: ProfileResource): { translated: TranslatedProfile; problems: ModelProblem[] } {
  const { name } = object.metadata;
  const sets = new SetCollector();
  const place = { owner: name, namespace: undefined, sets };
  const ingress = translateRules(object.spec?.ingress, { ...place, direction: "ingress" });
  const egress = translateRules(object.spec?.egress, { ...place, direction: "egress" });
  const problems = [...ingress.problems, ...egress.problems].map(({ code, message }) =>
    problem(object.kind, object.metadata, code, `${message}: from that rule on everything is denied`),
  );
  return {
    translated: { profile: { id: name, ingress: ingress.rules, egress: egress.rules }, sets: sets.sets },
    problems,
  };
}

/** Of a namespace, until a policy says otherwise, and of automatic host endpoints. */
export function allowAllProfile(id: string): TranslatedProfile {
  const allow = (direction: "ingress" | "egress") => [
    { id: ruleId({ owner: id, direction }, 0), action: "allow" as const },
  ];
  return { profile: { id, ingress: allow("ingress"), egress: allow("egress") }, sets: new Map() };
}
