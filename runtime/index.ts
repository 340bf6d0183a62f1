/**
 * taskchart: A2A tasks as statecharts. Write an agent with `defineAgent` (and `setupWork`), run it with
 * `createRuntime`, serve it with `serve` of `taskchart/http`, call it with `connect` of `taskchart/client`.
 */
export {
  accepted,
  artifact,
  data,
  declined,
  failed,
  file,
  offer,
  progress,
  rejected,
  reply,
  text,
  textOf
} from './authoring/words.ts'
export { authRequired, inputRequired } from './authoring/questions.ts'
export { dataOf } from './authoring/input-schema.ts'
export { negotiation } from './negotiation/negotiation.ts'
export { setupNegotiation } from './negotiation/respond-chart.ts'
export { defineAgent } from './agent/define-agent.ts'
export { artifactToRefine, refined, fromPromise } from './work/refining.ts'
export { taskCompleted } from './work/awaited-tasks.ts'
export { setupWork, typed } from './authoring/setup-work.ts'
export { propertiesOf } from '../machines/properties/properties-of.ts'
export { createRuntime } from './runtime.ts'
export { A2AError } from '../machines/protocol/errors.ts'

export type { Agent, AgentDefinition, WorkChart } from './agent/define-agent.ts'
export type { AgentDescription } from './agent/described-card.ts'
export type { Property } from '../machines/properties/properties.ts'
export type { PropertyWords } from '../machines/properties/properties-of.ts'
export type { Term } from '../machines/properties/terms.ts'
export type { ArtifactChoice } from './authoring/artifact-choices.ts'
export type { ArtifactReference } from './authoring/words.ts'
export type { Authenticate, Authorize, Caller, Principal } from './access/authentication.ts'
export type { CallContext } from './access/call-context.ts'
export type { LimitChanges } from './access/limits.ts'
export type { Clock } from './ports/clock.ts'
export type { Logger } from './ports/logger.ts'
export type { StandardSchema } from './ports/standard-schema.ts'
export type { PromiseArguments } from './work/refining.ts'
export type { NegotiateFunction } from './negotiation/per-message.ts'
export type { Negotiation } from './negotiation/negotiation.ts'
export type { MessageToAnswer, NegotiationAnswer, OpenOffer, RespondArguments } from './negotiation/respond-chart.ts'
export type { Runtime, RuntimeOptions } from './runtime-options.ts'
export type { Migrate } from './snapshots/restored-task.ts'
export type { WorkMeta } from './authoring/setup-work.ts'
export type { WorkTag } from './authoring/question-guards.ts'
export type { AuthorizationReceived, MessageReceived } from './authoring/input-schema.ts'
export type { GeneratorArguments, StepArguments, WorkArguments, WorkInput } from './authoring/work-arguments.ts'
export type { EarlierArtifact } from './authoring/artifact-choices.ts'
export type { WorkFunction, WorkGenerator } from './work/function-work.ts'
export type { Authorization, Question } from './authoring/questions.ts'
export type { SignCard } from './agent/signed-cards.ts'
export type {
  Accepted,
  ArtifactWords,
  Declined,
  Failed,
  Offered,
  ProducedArtifact,
  Progress,
  Rejected,
  Reply,
  Words,
  WorkResult,
  WorkWords
} from './authoring/words.ts'
export type { ErrorCode } from '../machines/protocol/errors.ts'
export type { JsonValue } from '../machines/protocol/codec/json.ts'
export type { AgentCard, AgentInterface, AgentSkill } from '../machines/protocol/card.ts'
export type {
  Artifact,
  ListTasksResponse,
  Message,
  Part,
  RequestDetails,
  SendMessageResponse,
  StreamResponse,
  Task
} from '../machines/protocol/objects.ts'
export type { TaskState } from '../machines/protocol/states.ts'
