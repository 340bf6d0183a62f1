import t, { type Test } from 'tap'
import { fromCallback } from 'xstate'
import { LoopWatch } from '../../../../adapters/cli/process/loop-watch.ts'
import type { AgentDefinition } from '../../../../runtime/agent/define-agent.ts'
import { setupWork } from '../../../../runtime/authoring/setup-work.ts'
import { progress } from '../../../../runtime/authoring/words.ts'
import { runCommand } from '../../../fixtures/cli/run-command.ts'
import {
  deferred,
  rest,
  recordingLogger,
  say,
  start,
  taskIn,
  until
} from '../../../fixtures/runtime/runtime-helpers.ts'
import { TestClock } from '../../../fixtures/runtime/test-clock.ts'

/** A watch with a time of its own: `pass` lets time pass in which nothing else runs. */
function watching(t: Test) {
  const clock = new TestClock()
  const { logger, log } = recordingLogger()
  let nowMs = 0
  const pass = (ms: number) => void (nowMs += ms)
  const watch = new LoopWatch({ clock, logger, elapsedMs: () => nowMs })
  t.teardown(() => watch.stop())
  /** Lets the loop go on for so long, and gives what was logged. */
  const goOn = (ms = 100) => {
    clock.increment(0)
    for (let goneMs = 0; goneMs < ms; goneMs += 1) {
      pass(1)
      clock.increment(1)
    }
    return log.splice(0).map(({ message, details }) => ({ message, ...details }))
  }
  return { watch, clock, pass, goOn }
}

/** Runs work that is watched. */
function watchedWork(t: Test, definition: (pass: (ms: number) => void) => Omit<AgentDefinition, 'card'>) {
  const watched = watching(t)
  const { runtime } = start(t, definition(watched.pass))
  runtime.observe(watched.watch)
  return { ...watched, runtime }
}

const STOOD_STILL = 'the event loop was blocked'

await t.test('an event loop blocked for more than a second is logged once', async t => {
  const { pass, goOn } = watching(t)
  t.strictSame(goOn(500), [])
  pass(900)
  t.strictSame(goOn(), [])
  pass(2000)
  t.strictSame(goOn(), [{ message: STOOD_STILL, ms: 2000 }])
  t.strictSame(goOn(500), [])
})

await t.test('the log names the task that had control, not an earlier or later one', async t => {
  const { watch, pass, goOn } = watching(t)
  watch.runs('before')
  pass(5)
  watch.runs('slow')
  pass(1500.4)
  watch.runs('after')
  pass(5)
  t.strictSame(goOn(), [{ message: STOOD_STILL, ms: 1500, taskId: 'slow' }])
})

await t.test('no task is named for time outside its turn of the event loop', async t => {
  const { watch, pass, goOn } = watching(t)
  watch.runs('earlier')
  t.strictSame(goOn(10), [])
  pass(3000)
  t.strictSame(goOn(), [{ message: STOOD_STILL, ms: 3000 }])
})

await t.test('a stopped watch has no timers', async t => {
  const { watch, clock } = watching(t)
  watch.runs('a')
  t.equal(clock.pending, 0)
  watch.stop()
  t.equal(clock.size, 0)
})

await t.test('a function that blocks the loop is named', async t => {
  const { runtime, goOn } = watchedWork(t, pass => ({ work: () => pass(2000) }))
  const { id } = taskIn(await runtime.sendMessage(say('x')))
  t.strictSame(goOn(), [{ message: STOOD_STILL, ms: 2000, taskId: id }])
})

await t.test('a function that blocks the loop after a step is named', async t => {
  const gate = deferred<true>()
  const { runtime, goOn } = watchedWork(t, pass => ({
    work: async ({ step }) => {
      await step('one', () => gate.promise)
      pass(3000)
    }
  }))
  const { id } = taskIn(await runtime.sendMessage(say('x', {}, { returnImmediately: true })))
  await rest()
  t.strictSame(goOn(10), [])
  gate.resolve(true)
  await rest()
  t.strictSame(goOn(), [{ message: STOOD_STILL, ms: 3000, taskId: id }])
})

await t.test('a generator that blocks the loop between two words is named', async t => {
  const { runtime, goOn } = watchedWork(t, pass => ({
    work: async function* () {
      for (let said = 0; said < 33; said += 1) yield progress(`${said}`)
      await Promise.resolve()
      pass(3000)
    }
  }))
  const { id } = taskIn(await runtime.sendMessage(say('x')))
  t.strictSame(goOn(), [{ message: STOOD_STILL, ms: 3000, taskId: id }])
})

await t.test('a chart that blocks the loop initially or at a message is named', async t => {
  const { runtime, goOn } = watchedWork(t, pass => ({
    messages: 'deliver',
    work: setupWork({ actors: { waits: fromCallback(() => {}) } }).createMachine({
      initial: 'first',
      entry: () => pass(1200),
      invoke: { src: 'waits' },
      states: { first: { on: { 'message.received': { target: 'second', actions: () => pass(1700) } } }, second: {} }
    })
  }))
  const { id } = taskIn(await runtime.sendMessage(say('x', {}, { returnImmediately: true })))
  await rest()
  t.strictSame(goOn(), [{ message: STOOD_STILL, ms: 1200, taskId: id }])
  await runtime.sendMessage(say('y', { taskId: id }, { returnImmediately: true }))
  t.strictSame(goOn(), [{ message: STOOD_STILL, ms: 1700, taskId: id }])
})

await t.test('taskchart serve logs that the event loop was blocked, and by which work', async t => {
  const cwd = t.testdir({
    'slow.js':
      "export default { card: { name: 'Slow' }, work: () => { globalThis.passMs(2500); return { artifact: 'done' } } }"
  })
  let nowMs = 0
  Object.assign(globalThis, { passMs: (ms: number) => void (nowMs += ms) })
  t.teardown(() => Reflect.deleteProperty(globalThis, 'passMs'))
  const stop = new AbortController()
  const announced = deferred<string>()
  let stderr = ''
  const ended = runCommand(['serve', 'slow.js', '--port', '0', '--json', '--log', 'json'], {
    cwd,
    signal: stop.signal,
    printed: announced.resolve,
    heard: text => void (stderr += text),
    elapsedMs: () => nowMs
  })
  const { url } = JSON.parse(await announced.promise) as { url: string }
  const { stdout } = await runCommand(['send', url, 'go', '--json'], { cwd })
  const [, taskId] = /"taskId":"([^"]+)"/.exec(stdout) ?? []
  await until(() => stderr.includes(STOOD_STILL))
  t.match(
    stderr
      .split('\n')
      .map(line => line && JSON.parse(line))
      .find(line => line.message === STOOD_STILL),
    { level: 'warn', details: { taskId, ms: Number } }
  )
  stop.abort()
  t.equal((await ended).code, 0)
})
