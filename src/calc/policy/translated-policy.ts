import type { SelectorExpression } from "../../api/schema/selector-expression.ts";
import type { Direction, ModelProblem, Policy } from "../model.ts";
import type { SetSource } from "./set-source.ts";

/** A policy of any kind, ready to be given to the endpoints it selects. */
export interface TranslatedPolicy {
  policy: Policy;
  /** Decides between policies of one order: the stored name, then the namespace, then the kind. */
  tieBreak: string;
  selector: SelectorExpression;
  decides: Record<Direction, boolean>;
  /** `preDNAT` policies are for nodes only, and before translation only. */
  preDNAT: boolean;
  applyOnForward: boolean;
  sets: ReadonlyMap<string, SetSource>;
}

export interface Translation {
  /** Absent where the policy cannot be put into effect at all. */
  translated?: TranslatedPolicy;
  problems: ModelProblem[];
}
