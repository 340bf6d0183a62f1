/**
 * What adapters use of agents' work beside the public words: the steps of a chart, its questions, its run and its
 * stored form, and the store in memory. Tests of charts, drawings, delegation and `taskchart diff` are made of it.
 */

// Charts: their structure, other guards, steps without a runtime, counts of their transitions.
export { createActor, emit, promiseLogic } from './xstate/library.ts'
export { noteWrittenLogic, writtenConfig } from './xstate/state-nodes.ts'
export { type ChartConfiguration, SkeletonChart, UNNAMED } from './xstate/skeleton-chart.ts'
export { type GuardFunction, withReplacedGuards } from './xstate/guarded-chart.ts'
export {
  type Director,
  directedActor,
  isEndless,
  pureStart,
  pureStep,
  sendsSnapshots,
  withStepLimit
} from './xstate/pure-step.ts'
export type { ChartEffect } from './xstate/effects.ts'
export { chartVersion, FROM_START, type TransitionCount, UNKNOWN } from './xstate/transition-counter.ts'

// Questions, and their answers.
export { ANSWERS, hears, mayAskTwice, withQuestionGuards } from './authoring/question-guards.ts'
export {
  type AnswerValidation,
  isClientInput,
  openQuestion,
  promptedQuestion,
  reasonIn,
  receivedAnswer,
  validateAnswer
} from './work/chart-question.ts'
export { publishedSchema } from './authoring/input-schema.ts'
export { validateValue } from './ports/standard-schema.ts'

// Negotiation.
export { opinionOf } from './negotiation/bargaining.ts'
export { checkedTerms } from './negotiation/negotiation.ts'

// The work of a task: what it gets, its actor and its host.
export { agentOfVersion } from './agent/earlier-versions.ts'
export type { MessagePolicy } from './agent/policies.ts'
export { namedArtifacts } from './authoring/words.ts'
export { type ReceivedMessage, toolsOf, type WorkEnd, type WorkStepArguments } from './authoring/work-arguments.ts'
export { type ActorHost, actorPathOf, hostOf, taskIdOf } from './commits/actor-host.ts'
export { runOf } from './work/function-work.ts'
export { replaceSchedule, startRestored, takeId } from './xstate/actor-system.ts'

// Stored tasks: their record, its replay with other code, their restore.
export { countOpenVersions } from './contexts/earlier-tasks.ts'
export { dryRunRestore, readOpenRow, type RestoreOutlook, tryRestore } from './contexts/restore-dry-run.ts'
export {
  type RecordedTask,
  readRecord,
  type ReplayOutcome,
  replayTask,
  type TaskReplay
} from './contexts/task-replay.ts'
export { type Names, namesSince } from './snapshots/renames.ts'
export type { SavedTask } from './snapshots/snapshot-text.ts'
export { patchIn } from './work/journal.ts'
export { pointerPart } from './work/redacted-values.ts'

// Definitions: what the store has of an agent's code.
export {
  type AgentOutline,
  CODE_OPTIONS,
  type LocalModules,
  type ModuleDigests,
  agentOutline,
  outlineForVersion,
  outlineText,
  parseOutline,
  PLAIN_OPTIONS,
  type WorkOutline
} from './definitions/agent-outline.ts'
export {
  answerFormOf,
  answerFormText,
  type ChartParts,
  type CodePart,
  type Decisive,
  type ModuleReads,
  nameOf,
  partsOf,
  pathOf,
  type StateParts
} from './definitions/chart-parts.ts'
export { textDigest } from './definitions/code-text.ts'
export { joinedTokens, mentionedNames, plainSource, RESERVED, type Token, tokensOf } from './definitions/source-text.ts'

// Stores.
export { jsonLoss } from './primitives/json.ts'
export { memoryStore } from './store/memory/memory-store.ts'
export type { WorkStore } from './store/retrying-reads.ts'
