import type { Fault } from './fault.ts'

const PIPELINE = 'runtime/commits/commit-pipeline.ts'
const SENDS = 'runtime/operations/keyed-messages.ts'
const TIMERS = 'runtime/commits/task-timers.ts'
const REPLAY = 'runtime/work/replay.ts'
const TASKS = 'runtime/operations/tasks.ts'

/** Faults of the runtime. */
export const runtimeFaults: readonly Fault[] = [
  {
    name: 'an operation whose capability is off is served',
    file: 'runtime/operations/admission.ts',
    find: 'if (makeRefusal) throw makeRefusal()',
    replace: ''
  },
  {
    name: 'an extension that is turned off can be activated',
    file: 'runtime/operations/admission.ts',
    unit: 'test/runtime/agent/agent-cards.test.ts',
    find: 'supported.reliability && ',
    replace: ''
  },
  {
    name: 'the metadata of a request is lost when its work is replayed',
    file: 'runtime/work/work-input.ts',
    unit: 'test/runtime/authoring/request-details.test.ts',
    find: 'if (request !== NO_DETAILS) turn.addJournal({ taskId, key: REQUEST, value: request })',
    replace: ''
  },
  {
    name: 'an unknown option is ignored',
    file: 'runtime/primitives/options.ts',
    unit: 'test/scenarios/options.test.ts',
    find: 'if (kind === undefined) return rejectUnknown({ [name]: value }, Object.keys(kinds), taker)',
    replace: 'if (kind === undefined) continue'
  },
  {
    name: 'a Map is stored as an empty object',
    file: 'runtime/primitives/json.ts',
    unit: 'test/runtime/work/work-again.test.ts',
    find: 'if (!isPlain(value)) {',
    replace: "if (!isPlain(value) && kindIn(value) !== 'Map') {"
  },
  {
    name: 'an unknown result completes the task',
    file: 'runtime/authoring/checked-words.ts',
    unit: 'test/runtime/work/work.test.ts',
    find: '  checkResult(given)\n',
    replace: ''
  },
  {
    name: 'a state that cannot be left gets no warning',
    file: 'runtime/agent/chart-check.ts',
    unit: 'test/runtime/agent/agent.test.ts',
    find: 'targets.some(to => to !== state && isOutside(commonPath(source, to)))',
    replace: 'targets.length > 0'
  },
  {
    name: 'an agent is accepted as a runtime',
    file: 'runtime/runtime-options.ts',
    unit: 'test/scenarios/options.test.ts',
    find: "if (isObject(given) && typeof given['sendMessage'] === 'function' && isObject(given['settings']))",
    replace: 'if (isObject(given))'
  },
  {
    name: 'posts to webhooks are not limited by tenant',
    file: 'runtime/webhooks/delivery-queue.ts',
    unit: 'test/runtime/webhooks/push.test.ts',
    find: 'services.sharesByTenant ?',
    replace: 'false as boolean ?'
  },
  {
    name: 'history is read without a limit',
    file: 'runtime/work/context-history.ts',
    unit: 'test/runtime/work/work-again.test.ts',
    find: 'if (bytes > left) break',
    replace: ''
  },
  {
    name: 'the messages that a task keeps have no limit',
    file: 'runtime/operations/route-message.ts',
    unit: 'test/runtime/access/shares.test.ts',
    find: 'services.contexts.freeMemoryFor(live)',
    replace: ''
  },
  {
    name: 'a user with a large message is always scheduled',
    file: 'runtime/access/call-scheduler.ts',
    unit: 'test/adapters/entry/reading.test.ts',
    find: 'this.#debts.set(user, cost - part)',
    replace: ''
  },
  {
    name: 'events are sent before they are stored',
    file: 'runtime/contexts/context.ts',
    find: 'this.#services.store.commit(commit).then(\n      isWritten => this.#settle(turn, isWritten),',
    replace: `this.#settle(turn, true)
    this.#services.store.commit(commit).then(
      () => {},`
  },
  {
    name: 'a context whose commits are refused reloads at once',
    file: 'runtime/contexts/context-registry.ts',
    unit: 'test/runtime/commits/commits.test.ts',
    find: "reason === 'refused' ? reloadDelayAfter(broken, clock.now() - sinceMs) : 0",
    replace: '0'
  },
  {
    name: 'a step begins while the store refuses commits',
    file: 'runtime/work/journal.ts',
    unit: 'test/runtime/commits/commits.test.ts',
    find: 'if (refused) await refused',
    replace: ''
  },
  {
    name: 'a chart may loop for ever',
    file: 'runtime/xstate/compiled-machine.ts',
    unit: 'test/runtime/work/misbehaving.test.ts',
    find: 'if (steps > maxIterations) throw',
    replace: 'if (steps > 10 * maxIterations) return snapshot; if (steps < 0) throw'
  },
  {
    name: 'the rejection of a step that nobody awaits is not logged',
    file: 'runtime/work/journal.ts',
    unit: 'test/runtime/work/floating-steps.test.ts',
    find: 'if (!step.isAwaited && !isStopped) this.#log.logUnawaited(name, error)',
    replace: ''
  },
  {
    name: 'replayed work may ask another question',
    file: 'runtime/work/work-run.ts',
    unit: 'test/runtime/work/work-again.test.ts',
    find: 'this.#log.checkEnd()',
    replace: ''
  },
  {
    name: 'a card that the author never returns is awaited for ever',
    file: 'runtime/access/time-limit.ts',
    unit: 'test/runtime/agent/agent-cards.test.ts',
    find: "return await inTime(given, limits.accessMs, what, clock, 'The agent cannot give its card now.')",
    replace: 'return await given'
  },
  {
    name: 'an authorize that never resolves is awaited for ever',
    file: 'runtime/access/authentication.ts',
    unit: 'test/runtime/access/authorize.test.ts',
    find: "inTime<unknown>(authorize(request), limits.accessMs, 'authorize', clock)",
    replace: 'authorize(request)'
  },
  {
    name: 'a lost race counts as written',
    file: PIPELINE,
    unit: 'test/runtime/commits/commits.test.ts',
    find: 'if (!turn?.isWritten) return undefined',
    replace: 'if (turn?.isWritten === undefined) return undefined'
  },
  {
    name: 'the event of a chunk is not sent',
    file: 'runtime/contexts/facts.ts',
    find: 'if (event) this.#pipeline.turn.addEvent(event)',
    replace: `if (event && !('artifactUpdate' in event.update && event.update.artifactUpdate.append)) this.#pipeline.turn.addEvent(event)`
  },
  {
    name: 'a restored task counts its generations from the start',
    file: 'runtime/contexts/resume-tasks.ts',
    find: "ledger.open(taskId, { generation, state, statusTime, bytes, snapshotBytes: Buffer.byteLength(row.snapshot ?? '') })",
    replace: "ledger.open(taskId, { state, statusTime, bytes, snapshotBytes: Buffer.byteLength(row.snapshot ?? '') })"
  },
  {
    name: 'a page of tasks has no bound in bytes',
    file: 'runtime/operations/tasks.ts',
    unit: 'test/scenarios/large-answers.test.ts',
    find: 'bytes: PAGE_BYTES',
    replace: ''
  },
  {
    name: 'a restored task counts its bytes from zero',
    file: 'runtime/contexts/resume-tasks.ts',
    unit: 'test/runtime/work/misbehaving.test.ts',
    find: "ledger.open(taskId, { generation, state, statusTime, bytes, snapshotBytes: Buffer.byteLength(row.snapshot ?? '') })",
    replace: 'ledger.open(taskId, { generation, state, statusTime })'
  },
  {
    name: 'the snapshot of a context is never updated',
    file: 'runtime/snapshots/snapshot-text.ts',
    find: 'saved?.context === context ? saved',
    replace: 'saved ? saved'
  },
  {
    name: 'a message has the generation of the event before it',
    file: 'runtime/contexts/facts.ts',
    find: 'generation: this.#tasks.nextGeneration(taskId),',
    replace: 'generation: this.#tasks.generationOf(taskId),'
  },
  {
    name: 'a long poll does not wake on a message',
    file: 'runtime/streams/task-tail.ts',
    unit: 'test/runtime/streams/reliability.test.ts',
    find: 'this.#endsAfter(entry) : this.#endsAfterMessage) this.end()',
    replace: 'this.#endsAfter(entry) : false) this.end()'
  },
  {
    name: 'an expected generation is not compared',
    file: 'runtime/contexts/external-events.ts',
    find: 'if (ifGeneration !== undefined && ifGeneration !== generation)',
    replace: 'if (ifGeneration === -1)'
  },
  {
    name: 'the stream of a message goes on after a question',
    file: 'machines/protocol/states.ts',
    find: "return isTerminal(state) || state === 'TASK_STATE_INPUT_REQUIRED'",
    replace: 'return isTerminal(state)'
  },
  {
    name: 'a chart starts before its task is stored',
    file: 'runtime/contexts/work-host.ts',
    unit: 'test/runtime/commits/commits.test.ts',
    find: "if (input && typeof this.#services.agent.work === 'function') return this.#begin(input)",
    replace: 'if (input) return this.#begin(input)'
  },
  {
    name: 'a runtime that closes accepts calls',
    file: 'runtime/contexts/dependencies.ts',
    unit: 'test/scenarios/health.test.ts',
    find: 'if (!this.isOpen) throw runtimeClosing()',
    replace: ''
  },
  {
    name: 'every caller may use every tenant',
    file: 'runtime/access/quotas.ts',
    unit: 'test/runtime/access/tenants.test.ts',
    find: 'const mayUseTenant = this.#services.tenants.has(scope, claims)',
    replace: 'const mayUseTenant = this.#services.tenants.has(scope, claims) || true'
  },
  {
    name: 'the terms of a deal do not reach the work',
    file: 'runtime/contexts/facts.ts',
    find: 'firstWorkInput({ taskId, contextId, message, ...details }, terms)',
    replace: 'firstWorkInput({ taskId, contextId, message, ...details }, undefined)'
  },
  {
    name: 'a context leaves memory although its timer is due',
    file: 'runtime/contexts/context.ts',
    find: 'return this.nextWakeMs > this.#services.clock.now()',
    replace: 'return true'
  },
  {
    name: 'a waiting call is forgotten when its task leaves memory',
    file: 'runtime/contexts/context-registry.ts',
    find: 'this.#wakes.expect(live.nextWakeMs)',
    replace: ''
  },
  {
    name: 'a timer that fired stays in the queue',
    file: 'runtime/commits/task-timers.ts',
    find: 'if (!this.#drop(timer)) return',
    replace: ''
  },
  {
    name: 'a due delayed event that ends the process is not counted against its task',
    file: 'runtime/contexts/work-host.ts',
    unit: 'test/runtime/contexts/recovery.test.ts',
    find: 'if (this.#recovery?.isUnderWay(delivery.taskId)) this.afterCommit(delivery)\n    else if (!this.#paces?.keepsBack(delivery)) delivery.run()',
    replace: 'delivery.run()'
  },
  {
    name: 'a timer is lost when its task is restored',
    file: TIMERS,
    find: 'for (const { start } of timers.toSorted((a, b) => a.dueMs - b.dueMs)) start()',
    replace: 'for (const { start, dueMs } of timers) if (dueMs > this.#host.clock.now() + 1000) start()'
  },
  {
    name: 'a deadline is ignored',
    file: TIMERS,
    unit: 'test/runtime/commits/deadlines.test.ts',
    find: `this.#setDeadline(taskId, deadlineAtMs)
    return`,
    replace: 'return'
  },
  {
    name: 'a deadline is lost when its task is restored',
    file: TIMERS,
    unit: 'test/runtime/commits/deadlines.test.ts',
    find: 'return dueMs === undefined ? events : [...events, { dueMs, start: () => this.#setDeadline(taskId, dueMs) }]',
    replace: 'return events'
  },
  {
    name: 'a sleep starts over when the work is replayed',
    file: 'runtime/work/journal.ts',
    unit: 'test/runtime/work/work-again.test.ts',
    find: 'const untilMs = isSleep(kept) ? kept.untilMs : this.#host.clock.now() + delayMs',
    replace: 'const untilMs = this.#host.clock.now() + delayMs'
  },
  {
    name: 'an answer is not stored',
    file: 'runtime/work/question-queue.ts',
    find: 'this.#log.keepNews(open.key, given)',
    replace: ''
  },
  {
    name: 'an answer is given to the wrong question',
    file: 'runtime/work/question-queue.ts',
    find: 'key: String(ordinal)',
    replace: `key: 'answer'`
  },
  {
    name: 'the messages of a run are counted off by one',
    file: REPLAY,
    find: 'if (ordinal > this.#upTo) return word',
    replace: 'if (ordinal >= this.#upTo) return word'
  },
  {
    name: 'an artifact is sent again when the work is replayed',
    file: REPLAY,
    find: 'if (sameJson(recorded.append ? artifact : whole, recorded.artifact)) return undefined',
    replace: ''
  },
  {
    name: 'the result of a step is not stored',
    file: 'runtime/work/journal.ts',
    find: 'this.#log.keepNews(key, { result })',
    replace: ''
  },
  {
    name: 'work starts although its task has ended in a turn that is not stored',
    file: 'runtime/work/work-run.ts',
    unit: 'test/runtime/work/work-again.test.ts',
    find: " || this.#options.scope.self.getSnapshot().status !== 'active'",
    replace: ''
  },
  {
    name: 'canceled work is not told to stop',
    file: 'runtime/work/work-run.ts',
    unit: 'test/runtime/work/work-function.test.ts',
    find: 'this.#abort?.abort(over.reason)',
    replace: ''
  },
  {
    name: 'message ids are not remembered',
    file: 'runtime/operations/send-message.ts',
    find: 'if (!isOnce && !deduplicate) return',
    replace: 'if (!deduplicate) return'
  },
  {
    name: 'a resent message is processed twice while the first is in progress',
    file: SENDS,
    find: 'underWay.set(name, { fingerprint: send.fingerprint, end })',
    replace: ''
  },
  {
    name: 'the key of a message of another node may have another task now',
    file: SENDS,
    unit: 'test/adapters/cluster/cluster.test.ts',
    find: 'if (nameOf(target) === targetName) return {}',
    replace: 'if (nameOf(target) === targetName || name) return {}'
  },
  {
    name: 'every principal can read a task',
    file: 'runtime/store/memory/contexts.ts',
    find: 'return task && isSameScope(scope, task.key) ?',
    replace: 'return task ?'
  },
  {
    name: 'a page of tasks is read at once',
    file: 'runtime/store/rows.ts',
    unit: 'test/runtime/store/memory-store.test.ts',
    find: 'if (fits) left -= bytes',
    replace: ''
  },
  {
    name: 'what an agent sends is copied however deep it nests',
    file: 'runtime/primitives/json.ts',
    unit: 'test/runtime/primitives/json.test.ts',
    find: 'around.length === FAR_TOO_DEEP',
    replace: 'around.length < 0'
  },
  {
    name: 'a page of a list repeats the end of the last one',
    file: 'runtime/store/memory/indexes.ts',
    find: 'const last = tasks.at(-1)',
    replace: 'const last = tasks.at(-2) ?? tasks.at(-1)'
  },
  {
    name: 'an open task is removed with the old ones',
    file: 'runtime/store/memory/contexts.ts',
    unit: 'test/runtime/store/memory-store.test.ts',
    find: 'if (snapshot !== undefined) continue',
    replace: ''
  },
  {
    name: 'an appended chunk replaces the artifact',
    file: 'runtime/store/task-record.ts',
    find: 'const known = append ? artifacts.get(artifact.artifactId) : undefined',
    replace: 'const known = append ? undefined : artifacts.get(artifact.artifactId)'
  },
  {
    name: 'a limited history shows its oldest messages',
    file: 'runtime/store/task-record.ts',
    find: 'return count === 0 ? [] : list.slice(-count)',
    replace: 'return list.slice(0, count)'
  },
  {
    name: 'a long poll never answers',
    file: TASKS,
    find: 'services.clock.setTimeout(() => tail.end(), services.limits.longPollMs)',
    replace: 'services.clock.setTimeout(() => {}, services.limits.longPollMs)'
  },
  {
    name: 'a cursor ahead of the log is accepted',
    file: TASKS,
    find: 'if (afterGeneration > generation) throw aheadOfTask(generation)',
    replace: ''
  },
  {
    name: 'a refusal has the wrong code',
    file: 'runtime/operations/route-message.ts',
    find: "return new A2AError('UnsupportedOperation', `Task ${id} ${why}`",
    replace: "return new A2AError('InvalidRequest', `Task ${id} ${why}`"
  },
  {
    name: 'a stream repeats events that its reader has',
    file: 'runtime/streams/task-tail.ts',
    find: 'filter(event => event.generation > generation)',
    replace: 'filter(event => event.generation >= generation)'
  },
  {
    name: 'one principal may fill all live contexts',
    file: 'runtime/access/shares.ts',
    unit: 'test/runtime/access/shares.test.ts',
    find: 'amount, most.user)) return',
    replace: 'amount, most.whole)) return'
  },
  {
    name: 'a message refers to any number of tasks',
    file: 'runtime/operations/send-message.ts',
    unit: 'test/runtime/work/references.test.ts',
    find: 'if (distinct.length > limit)',
    replace: 'if (distinct.length > limit * 1000)'
  },
  {
    name: 'referenced tasks are loaded without a limit',
    file: 'runtime/work/task-loads.ts',
    unit: 'test/runtime/work/references.test.ts',
    find: 'this.#given + task.bytes > referencedBytes ||',
    replace: ''
  },
  {
    name: 'a task of any stored size is replayed',
    file: 'runtime/work/work-input.ts',
    unit: 'test/runtime/work/references.test.ts',
    find: 'if (bytes + journalBytes > restoredBytes)',
    replace: 'if (bytes < 0)'
  },
  {
    name: 'the watchdog does not know which task blocks the event loop',
    file: 'runtime/contexts/work-host.ts',
    unit: 'test/adapters/cli/process/cli-loop-watch.test.ts',
    find: 'this.noteRun(effect.taskId)',
    replace: ''
  },
  {
    name: 'an answer lacks a message that reached its task meanwhile',
    file: 'runtime/contexts/context.ts',
    unit: 'test/scenarios/large-answers.test.ts',
    find: 'const entries = turn.entriesOf(taskId)',
    replace: 'const entries = turn.entriesOf(taskId).filter(({ update }) => update)'
  },
  {
    name: 'a call that waits keeps any number of bytes',
    file: 'runtime/operations/send-message.ts',
    unit: 'test/scenarios/large-answers.test.ts',
    find: '(bytes += eventBytes(event)) <= LARGE_BYTES',
    replace: 'eventBytes(event) >= 0'
  },
  {
    name: 'a task that ends without what has to happen violates nothing',
    file: 'machines/properties/monitor.ts',
    unit: 'test/runtime/property-watch.test.ts',
    find: "return isOver && after === 'owes' ? 'violated' : after",
    replace: 'return after'
  },
  {
    name: 'a violation by a restored task is missed',
    file: 'runtime/property-watch.ts',
    unit: 'test/runtime/property-watch.test.ts',
    find: 'for (const event of waiting) this.#evaluate(key, watched, event)',
    replace: ''
  },
  {
    name: 'a node that gets a shard does not read its wakes',
    file: 'runtime/contexts/context-registry.ts',
    unit: 'test/adapters/cluster/cluster.test.ts',
    find: 'this.#broken.regain(isContinued)\n    this.#wakes.expect(0)',
    replace: 'this.#broken.regain(isContinued)'
  },
  {
    name: 'the record of a work that runs again is read at once',
    file: 'runtime/contexts/work-host.ts',
    unit: 'test/runtime/work/work-again.test.ts',
    find: 'readAllEvents(this.#services.reads, this.key, taskId, this.#tasks.generationOf(taskId))',
    replace: 'this.#services.reads.readEvents(this.key, taskId, 0, 1e9)'
  },
  {
    name: 'the events of a large task for a webhook are read at once',
    file: 'runtime/webhooks/delivery.ts',
    unit: 'test/adapters/legacy/legacy.test.ts',
    find: 'for await (const piece of eventPieces(store, scope, taskId, generation))',
    replace: 'for (const piece of [await store.readEvents(scope, taskId, 0, generation)])'
  },
  {
    name: 'the decision on a patch is not stored',
    file: 'runtime/work/journal.ts',
    unit: 'test/runtime/work/patches.test.ts',
    find: 'this.keep(PATCH_PREFIX + name, { isPatched, atMs: this.#host.clock.now() } satisfies PatchDecision)',
    replace: ''
  },
  {
    name: 'a retired patch does not throw for a task that goes on without it',
    file: 'runtime/work/journal.ts',
    unit: 'test/runtime/work/patches.test.ts',
    find: 'if (this.#patchOf(name) ?? (!this.#hasPassed && this.#decide(name, true))) return',
    replace: 'return'
  },
  {
    name: 'a task of an earlier version goes on with the work of today',
    file: 'runtime/snapshots/restored-task.ts',
    unit: 'test/runtime/contexts/earlier-versions.test.ts',
    find: 'const earlier = agent.earlier?.[version]',
    replace: "const earlier = version === '' ? agent.earlier?.[version] : undefined"
  },
  {
    name: 'the end of the last task of an earlier version is not logged',
    file: 'runtime/contexts/earlier-tasks.ts',
    unit: 'test/runtime/contexts/earlier-versions.test.ts',
    find: 'if (open.has(version)) continue',
    replace: 'if (version.length > 0) continue'
  },
  {
    name: 'a nested state that was renamed keeps its old name',
    file: 'runtime/snapshots/renames.ts',
    unit: 'test/runtime/snapshots/renames.test.ts',
    find: 'now[name] = this.#valueOf(below, [...path, key])',
    replace: 'now[name] = below'
  }
]
