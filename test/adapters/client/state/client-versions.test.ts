import t from 'tap'
import { artifactVersions, connect } from '../../../../adapters/client/connect.ts'
import { serve } from '../../../../adapters/serve/serve.ts'
import type { Artifact, StreamResponse, Task } from '../../../../machines/protocol/objects.ts'
import { artifact, createRuntime, defineAgent, refined, text, textOf } from '../../../../runtime/index.ts'
import { say, taskIn, userMessage } from '../../../fixtures/runtime/runtime-helpers.ts'

const boat = (artifactId: string, words = artifactId, name = 'boat.txt'): Artifact => ({
  artifactId,
  name,
  parts: [text(words)]
})

const task = (id: string, ...artifacts: Artifact[]): Task => ({
  id,
  contextId: 'c',
  status: { state: 'TASK_STATE_COMPLETED' },
  artifacts
})

const chunk = (taskId: string, artifact: Artifact, append = false): StreamResponse => ({
  artifactUpdate: { taskId, contextId: 'c', artifact, append }
})

await t.test('versions are ordered by arrival, and grouped by name', t => {
  const history = artifactVersions()
  t.strictSame([history.names(), history.versions('boat.txt'), history.latest('boat.txt')], [[], [], undefined])
  history.add(task('t2', boat('b'), boat('s', 's', 'ship.txt')))
  history.add({ task: task('t1', boat('a')) })
  history.add({ message: userMessage('hello') })
  history.add({ statusUpdate: { taskId: 't1', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } } })
  history.add({ id: 't3', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } })
  t.strictSame(history.names(), ['boat.txt', 'ship.txt'])
  t.strictSame(
    history.versions('boat.txt').map(({ taskId, artifactId, name }) => [taskId, artifactId, name]),
    [
      ['t2', 'b', 'boat.txt'],
      ['t1', 'a', 'boat.txt']
    ]
  )
  t.strictSame(history.latest('boat.txt'), { taskId: 't1', artifactId: 'a', name: 'boat.txt', artifact: boat('a') })
  history.add(task('t2', boat('b', 'seen again')))
  t.strictSame(
    history.versions('boat.txt').map(({ artifact }) => textOf(artifact)),
    ['seen again', 'a'],
    'a known version keeps its place'
  )
  t.end()
})

await t.test('a rejected version does not count, and the one before it is the latest', t => {
  const history = artifactVersions()
  history.add(task('t1', boat('a')))
  history.add(task('t2', boat('a', 'another of the same id')))
  const { latest } = history
  const worse = latest('boat.txt')
  t.equal(worse?.taskId, 't2')
  if (worse) for (const _ of [1, 2]) history.reject(worse)
  t.equal(latest('boat.txt')?.taskId, 't1')
  history.add(task('t2', boat('a', 'again')))
  t.strictSame(
    history.versions('boat.txt').map(({ taskId }) => taskId),
    ['t1'],
    'for good'
  )
  history.reject({ taskId: 't1', artifactId: 'a' })
  t.equal(latest('boat.txt'), undefined)
  t.end()
})

await t.test('chunks form one version, without changing the events', t => {
  const history = artifactVersions()
  const first = boat('a', 'one')
  history.add(chunk('t1', first))
  history.add(chunk('t1', { artifactId: 'a', parts: [text('two')] }, true))
  t.strictSame(history.latest('boat.txt')?.artifact, { ...boat('a'), parts: [text('one'), text('two')] })
  t.strictSame(first, boat('a', 'one'))
  history.add(chunk('t1', boat('a', 'begun again')))
  t.strictSame(
    history.versions('boat.txt').map(({ artifact }) => textOf(artifact)),
    ['begun again']
  )
  history.add(chunk('t2', boat('b', 'from the middle'), true))
  t.equal(history.latest('boat.txt')?.artifactId, 'b')
  t.end()
})

await t.test('an artifact without a name is grouped by its id, and so is its refinement', t => {
  const history = artifactVersions()
  const original = { artifactId: 'a', parts: [text('x')] }
  history.add(task('t1', original))
  history.add(task('t2', { artifactId: 'b', ...refined({ artifact: original }, 'y') }))
  t.strictSame(
    history.versions('a').map(({ artifactId }) => artifactId),
    ['a', 'b']
  )
  t.end()
})

await t.test('a client refines the version of its choice, whichever is the newest', async t => {
  const runtime = createRuntime({
    agent: defineAgent({
      card: { name: 'Painter' },
      work: async work => {
        const words = textOf(work.message)
        if (words === 'a boat') {
          work.emit(artifact({ artifactId: 'v1', name: 'boat.txt', parts: [text('a ')] }))
          work.emit(artifact({ artifactId: 'v1', parts: [text('boat')] }, { append: true, lastChunk: true }))
          return {}
        }
        const original = await work.artifactToRefine()
        return { artifact: refined(original, `${words} ${textOf(original.artifact).replace('\n', '')}`) }
      }
    })
  })
  t.teardown(() => runtime.close())
  const served = await serve(runtime, { port: 0, http: false })
  t.teardown(() => served.close())
  const client = await connect(served.url)
  t.teardown(() => client.close())

  const history = artifactVersions()
  const latest = () => {
    const version = history.latest('boat.txt')
    if (!version) throw new Error('There is no version.')
    return version
  }
  for await (const event of client.sendStreamingMessage(say('a boat', { contextId: 'c' }))) history.add(event)
  t.strictSame(latest().artifact.parts, [text('a '), text('boat')])
  history.add(taskIn(await client.sendMessage(say('red', { contextId: 'c' }))))
  t.equal(textOf(latest().artifact), 'red a boat')

  history.reject(latest())
  const { metadata, referenceTaskIds } = history.reference(latest())
  t.strictSame([metadata, referenceTaskIds], [{ artifactId: 'v1', taskId: latest().taskId }, [latest().taskId]])
  history.add(
    await client.sendMessage(
      say('', { contextId: 'c', referenceTaskIds, parts: [{ text: 'blue', metadata: { ...metadata } }] })
    )
  )
  t.equal(textOf(latest().artifact), 'blue a boat')
  t.strictSame(
    history.versions('boat.txt').map(({ artifact }) => textOf(artifact)),
    ['a \nboat', 'blue a boat']
  )
})
