import type { Fault } from './fault.ts'

/** Faults of the command, the inspector, the drawings, the proofs, and the adapter for models. */
export const toolFaults: readonly Fault[] = [
  {
    name: "an agent's text can control the terminal",
    file: 'adapters/cli/text/terminal.ts',
    unit: 'test/adapters/cli/talk/cli-terminal.test.ts',
    find: `return seen(text.replace(/[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f]/g, ''))`,
    replace: 'return text'
  },
  {
    name: 'an interrupted export leaves its file',
    file: 'adapters/cli/tasks/export.ts',
    unit: 'test/adapters/cli/tasks/cli-tasks.test.ts',
    find: 'await sink.end(isWhole)',
    replace: 'await sink.end(true)'
  },
  {
    name: 'a comparison accepts tasks that would fail',
    file: 'adapters/cli/diff/diff.ts',
    unit: 'test/adapters/cli/cli-diff-db.test.ts',
    find: 'return EXIT.unsuccessful',
    replace: 'return EXIT.ok'
  },
  {
    name: 'an approval is used for another call',
    file: 'adapters/ai/tools.ts',
    unit: 'test/adapters/ai/ai.test.ts',
    find: 'decision.approvalId !== undefined && decision.approvalId !== approvalId',
    replace: `decision.approvalId === ''`
  },
  {
    name: 'the inspector shows secrets in events',
    file: 'adapters/inspector/recorder/seen-step.ts',
    unit: 'test/adapters/inspector/inspector.test.ts',
    find: '{ ...(redact(event) as object), type }',
    replace: '{ ...event, type }'
  },
  {
    name: 'the inspector shows secrets in titles',
    file: 'adapters/inspector/recorder/recent.ts',
    unit: 'test/adapters/inspector/inspector.test.ts',
    find: 'const shown = redact(words.slice(0, KEPT_TEXT))',
    replace: 'const shown = words.slice(0, KEPT_TEXT)'
  },
  {
    name: 'the inspector lists tasks that were erased',
    file: 'adapters/inspector/recorder/task-index.ts',
    unit: 'test/adapters/inspector/inspector-doors.test.ts',
    find: 'if (!isErased(whose, task.key)) continue',
    replace: 'if (whose.contextId !== task.key.contextId) continue'
  },
  {
    name: 'the inspector shows an old row of a task that has changed',
    file: 'adapters/inspector/recorder/task-index.ts',
    unit: 'test/adapters/inspector/inspector.test.ts',
    find: 'known.isChanged = true\n        this.#listener.changed(known)',
    replace: 'known.isChanged = true'
  },
  {
    name: 'the inspector shows an offer that no longer stands',
    file: 'adapters/inspector/recorder/context-index.ts',
    unit: 'test/adapters/inspector/inspector-talk.test.ts',
    find: 'known.offer = offer\n',
    replace: 'known.offer = offer ?? known.offer\n'
  },
  {
    name: 'a client that cancels leads out of an endless walk',
    file: 'adapters/testing/proof/counterexample.ts',
    unit: 'test/adapters/testing/proof.test.ts',
    find: "=> isOwing && edge.transition.type !== 'cancel'",
    replace: '=> isOwing'
  },
  {
    name: 'a canceled task owes its properties in a model for SPIN',
    file: 'adapters/testing/proof/promela.ts',
    unit: 'test/adapters/testing/promela.test.ts',
    find: "configuration.over === 'canceled' ? 'end_gone' : 'ended'",
    replace: "'ended'"
  },
  {
    name: 'a timer of the model that has fired keeps its id',
    file: 'adapters/testing/plan/model.ts',
    unit: 'test/adapters/testing/random-charts.test.ts',
    find: 'if (timer.sendId !== undefined) this.#forget(keyOf(timer.sendId, timer.route?.from))',
    replace: ''
  },
  {
    name: 'of two timers of the model at one time the newer fires',
    file: 'adapters/testing/plan/model.ts',
    unit: 'test/adapters/testing/random-charts.test.ts',
    find: 'return timers.toSorted(',
    replace: 'return timers.toReversed().toSorted('
  },
  {
    name: 'a comparison says that a changed guard is the same',
    file: 'adapters/testing/diff/verdicts.ts',
    unit: 'test/adapters/testing/diff/planted-edits.test.ts',
    find: "if (part.code.digest !== other.code.digest) return 'whose source changed'",
    replace: ''
  },
  {
    name: 'a comparison says that a task in a state that is gone is restored',
    file: 'adapters/testing/diff/verdicts.ts',
    unit: 'test/adapters/testing/diff/planted-edits.test.ts',
    find: 'const named = around.names?.snapshotOf(stored) ?? stored\n',
    replace: 'const named = around.names?.snapshotOf(stored) ?? stored\n      if (named) return undefined\n'
  }
]
