import t, { type Test } from 'tap'
import { z } from 'zod'
import {
  artifact,
  createRuntime,
  dataOf,
  defineAgent,
  fromPromise,
  inputRequired,
  progress,
  setupWork,
  textOf,
  type AgentDefinition,
  type WorkArguments
} from '../../../runtime/index.ts'
import { say } from '../../fixtures/runtime/runtime-helpers.ts'

/** A value that is wrong, as an author without types may write it. */
type Wrong = never

const ANSWER = 'Its answer is yield* inputRequired(…) in a generator, and await ask(inputRequired(…)) in a function.'

/** The error that the log has when work has run. */
async function errorOf(t: Test, work: AgentDefinition['work'] & {}): Promise<unknown> {
  const logged: unknown[] = []
  const runtime = createRuntime({
    agent: defineAgent({ card: { name: 'A' }, work }),
    logger: { warn: () => {}, error: (_, details) => logged.push(details?.['error']) }
  })
  t.teardown(() => runtime.close())
  await runtime.sendMessage(say('hi')).catch((error: unknown) => logged.push(error))
  return logged[0]
}

function chart(step: (name: Wrong, run?: Wrong) => unknown) {
  const src = fromPromise(async given => step(given.step as Wrong))
  return setupWork({ actors: { src } }).createMachine({ initial: 'a', states: { a: { invoke: { src: 'src' } } } })
}

await t.test('work that uses its arguments wrongly is told what to write', async t => {
  const rows: Record<string, [run: (work: WorkArguments) => unknown, message: string]> = {
    'a step without a name': [
      ({ step }) => step((() => 1) as Wrong, undefined as Wrong),
      "step takes a name and a function, not a function and undefined: step('price', async () => …)."
    ],
    'a step without a function': [
      ({ step }) => step('price', 5 as Wrong),
      "step takes a name and a function, not a string and a number: step('price', async () => …)."
    ],
    'a sleep of a text': [
      ({ sleep }) => sleep('1s' as Wrong),
      "A wait is a number of milliseconds from 0, not '1s': sleep(1000), or { deadlineMs: 1000 }."
    ],
    'a text that is asked': [
      ({ ask }) => ask('Which day?' as Wrong),
      "ask takes a question, not a string: ask(inputRequired('Which day?'))."
    ],
    'a task by number': [
      ({ readTask }) => readTask(5 as Wrong),
      'readTask takes the id of a task, not a number: readTask(taskId).'
    ],
    'a number to wait for': [
      ({ completed }) => completed(5 as Wrong),
      'completed takes a task or its id, not a number: completed(task).'
    ],
    'a task without an id to wait for': [
      ({ completed }) => completed({} as Wrong),
      'completed takes a task or its id, not an object: completed(task).'
    ],
    'no task to wait for': [
      ({ completed }) => completed(undefined as Wrong),
      'completed takes a task or its id, not undefined: completed(task).'
    ],
    'a function that is spawned': [
      ({ spawn }) => spawn((() => {}) as Wrong),
      'spawn takes the logic of an actor, not a function: spawn(fromPromise(async () => …)).'
    ]
  }
  for (const [name, [run, message]] of Object.entries(rows)) {
    t.match(await errorOf(t, async work => void (await run(work))), { message }, name)
  }
  const actor = chart((step: Wrong) => (step as (run: unknown) => unknown)(() => 1))
  t.match(
    await errorOf(t, actor),
    { message: "step takes a name and a function, not a function and undefined: step('price', async () => …)." },
    'a step of an actor without a name'
  )
})

await t.test('a question in place of its answer is told as such, wherever it is used', async t => {
  const asked = inputRequired('Which day?') as Wrong
  const uses: Record<string, [use: () => unknown, message: string]> = {
    'as a message': [() => textOf(asked), `textOf takes a message or an artifact, not a question. ${ANSWER}`],
    'as data': [() => dataOf(asked, z.string()), `dataOf takes a message or an artifact, not a question. ${ANSWER}`],
    'in a text': [() => `On ${String(asked)}`, `This is a question. ${ANSWER}`],
    'as a number': [() => Number(asked) + 1, `This is a question. ${ANSWER}`]
  }
  for (const [name, [use, message]] of Object.entries(uses)) t.throws(use, new TypeError(message), name)
  t.match(await errorOf(t, async ({ emit }) => emit(progress(asked))), {
    message: `The agent's code gave as message a question. ${ANSWER}`
  })
  t.match(await errorOf(t, async ({ emit }) => emit(artifact(asked))), {
    message: `The agent's code gave as artifact a question. ${ANSWER}`
  })
  t.match(await errorOf(t, async ({ emit }) => emit(asked)), {
    message: `The agent's code has to say progress(…) or artifact(…), not a question. ${ANSWER}`
  })
  t.match(await errorOf(t, async ({ emit }) => emit(progress(Promise.resolve('x') as Wrong))), {
    message: "The agent's code gave as message a promise. Await it: await …."
  })
  t.match(
    await errorOf(t, async function* () {
      const day = inputRequired('Which day?') as Wrong
      yield progress(textOf(day))
    }),
    { message: `textOf takes a message or an artifact, not a question. ${ANSWER}` }
  )
})
