import t from 'tap'
import { assign, type OutputFrom } from 'xstate'
import type { Artifact, Message, Part, Task } from '../../../machines/protocol/objects.ts'
import {
  artifact,
  artifactToRefine,
  inputRequired,
  progress,
  refined,
  setupWork,
  text,
  textOf as wordsOf,
  type ArtifactChoice,
  type ArtifactWords,
  type EarlierArtifact,
  type Runtime,
  type WorkArguments,
  type WorkFunction
} from '../../../runtime/index.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import {
  artifactChoices,
  meantArtifacts,
  whichArtifact,
  type RefiningOptions
} from '../../../runtime/authoring/artifact-choices.ts'
import { findArtifactToRefine } from '../../../runtime/work/refining.ts'
import { failOnLooseErrors, lives } from '../../fixtures/runtime/lives.ts'
import {
  open,
  reaches,
  rest,
  say,
  start,
  stateName,
  taskIn,
  textOf,
  userMessage
} from '../../fixtures/runtime/runtime-helpers.ts'

failOnLooseErrors(t)

const contextId = 'c'

/** Draws what it is told to; what begins with "refine" takes another artifact and makes it red. */
function artist(options?: RefiningOptions): WorkFunction {
  return async work => {
    const words = wordsOf(work.message)
    if (words.startsWith('refine')) {
      const original = await work.artifactToRefine({ ...options })
      return { artifact: original ? refined(original, `red ${wordsOf(original.artifact)}`) : 'new' }
    }
    if (words === 'nothing') return {}
    return { artifacts: words.split(' ').map(name => ({ name, parts: [text(name)] })) }
  }
}

const make = async (runtime: Runtime, words: string, more: Partial<Message> = {}, principal = 'anna') =>
  taskIn(await runtime.sendMessage(say(words, { contextId, ...more }), { principal }))

function onlyOf({ artifacts = [], status }: Task): Artifact {
  const [only, ...others] = artifacts
  if (!only || others.length > 0) throw new Error(`One artifact was expected: ${JSON.stringify({ artifacts, status })}`)
  return only
}

const referring = (task: Task, artifactId = onlyOf(task).artifactId): Part => ({
  text: 'this',
  metadata: { taskId: task.id, artifactId }
})

/** The choice that an answer makes, if it makes one. */
function chosenOf(choices: readonly ArtifactChoice[], answer: Message): ArtifactChoice | undefined {
  const [chosen, ...others] = meantArtifacts(choices, answer)
  return others.length === 0 ? chosen : undefined
}

await t.test('the artifacts that a message may refine', async t => {
  await t.test('are ordered by completion of their tasks, with incomplete ones last', async t => {
    const given: string[][] = []
    const { runtime, clock } = start(t, {
      work: async ({ message, earlierArtifacts, emit, sleep, ask }) => {
        const [name = '', ms] = wordsOf(message).split(' ')
        given.push(earlierArtifacts.map(({ artifact }) => wordsOf(artifact)))
        emit(artifact({ name: 'x', parts: [text(name)] }))
        if (ms === 'asks') await ask(inputRequired('?'))
        if (ms) await sleep(Number(ms))
      }
    })
    await open(runtime, 'slow 2000', { contextId })
    await open(runtime, 'quick 1000', { contextId })
    const { id } = await open(runtime, 'canceled 9000', { contextId })
    await open(runtime, 'waits asks', { contextId })
    await rest()
    clock.increment(1000)
    await rest()
    clock.increment(1000)
    await rest()
    await runtime.cancelTask({ id })
    await open(runtime, 'last', { contextId })
    await rest()
    t.strictSame(given.at(-1), ['slow', 'quick', 'waits', 'canceled'])
  })

  await t.test('are those of the context if its referenced tasks have none', async t => {
    const given: string[][] = []
    const { runtime } = start(t, {
      work: work => {
        given.push(work.earlierArtifacts.map(({ artifact }) => wordsOf(artifact)))
        return artist()(work)
      }
    })
    await make(runtime, 'boat')
    const { id } = await make(runtime, 'nothing')
    await make(runtime, 'x', { referenceTaskIds: [id] })
    await make(runtime, 'x', { referenceTaskIds: ['unknown'] })
    t.strictSame(given.slice(2), [['boat'], ['x', 'boat']])
  })

  await t.test('exclude those of the task itself when its work runs again', async t => {
    const given: string[][] = []
    const life = lives(t, {
      work: async ({ message, earlierArtifacts, emit, sleep }) => {
        given.push(earlierArtifacts.map(({ artifact }) => wordsOf(artifact)))
        emit(artifact(wordsOf(message)))
        if (wordsOf(message) === 'second') await sleep(1000)
      }
    })
    await open(life.runtime, 'first', { contextId })
    const { id } = await open(life.runtime, 'second', { contextId })
    await rest()
    await life.kill()
    await life.pass(1000)
    await reaches(life.runtime, id, 'completed')
    t.strictSame(given, [[], ['first'], ['first']])
  })
})

await t.test('the artifact to refine', async t => {
  await t.test('is the referenced one, in either form, or the newest of several with one name', async t => {
    const { runtime, clock } = start(t, { work: artist() })
    const boat = await make(runtime, 'boat')
    await make(runtime, 'ship')
    const { taskId, artifactId } = { taskId: boat.id, artifactId: onlyOf(boat).artifactId }
    for (const metadata of [{ taskId, artifactId }, { referenceArtifacts: [{ taskId, artifactId }] }]) {
      const red = onlyOf(await make(runtime, '', { parts: [{ text: 'refine', metadata }] }))
      t.match(red, { name: 'boat', parts: [{ text: 'red boat' }] })
      t.not(red.artifactId, artifactId)
    }
    clock.increment(1)
    const newer = await make(runtime, 'boat')
    const both = [referring(boat), referring(newer)]
    t.equal(textOf(onlyOf(await make(runtime, '', { parts: [{ text: 'refine' }, ...both] }))), 'red boat')
  })

  await t.test('is the only one of the referenced tasks, else the newest of the context', async t => {
    const { runtime, clock } = start(t, { work: artist() })
    const boat = await make(runtime, 'boat')
    t.equal(textOf(onlyOf(await make(runtime, 'refine'))), 'red boat')
    clock.increment(1)
    t.equal(textOf(onlyOf(await make(runtime, 'refine'))), 'red red boat', 'it is a new version, and the newest')
    await make(runtime, 'ship')
    t.equal(textOf(onlyOf(await make(runtime, 'refine', { referenceTaskIds: [boat.id] }))), 'red boat')
  })

  await t.test('is the one that a message names', async t => {
    const { runtime } = start(t, { work: artist() })
    await make(runtime, 'boat ship')
    t.equal(textOf(onlyOf(await make(runtime, 'refine the Ship, please'))), 'red ship')
  })

  await t.test('is asked for if several match: in words, and as parts to send back', async t => {
    const { runtime, clock } = start(t, { work: artist() })
    const boat = await make(runtime, 'boat')
    clock.increment(1)
    const ship = await make(runtime, 'ship')
    const [one, two] = [ship, boat].map(task => ({ artifactId: onlyOf(task).artifactId, taskId: task.id }))
    const choices = [
      { data: { ...one, name: 'ship' }, metadata: one },
      { data: { ...two, name: 'boat' }, metadata: two }
    ]
    const { id: taskId, status } = await make(runtime, 'refine')
    t.equal(status.state, 'TASK_STATE_INPUT_REQUIRED')
    t.strictSame(status.message?.parts, [{ text: 'Which artifact do you mean: ship or boat?' }, ...choices])

    const again = await make(runtime, 'the blue one', { taskId })
    t.strictSame(again.status.message?.parts, [
      { text: 'There is no artifact of that name, or you named several. Say ship or boat.' },
      ...choices
    ])
    t.match((await make(runtime, 'boat and ship', { taskId })).status.state, 'TASK_STATE_INPUT_REQUIRED')
    t.match(onlyOf(await make(runtime, 'the boat', { taskId })), { name: 'boat', parts: [{ text: 'red boat' }] })

    const answers: [string, Partial<Message>][] = [
      ['the part of the question', { parts: [choices[0] as Part] }],
      ['its data alone', { parts: [{ data: { ...one, name: 'ship' } }] }],
      ['the metadata on words', { parts: [referring(ship)] }],
      ['its id in a text', { parts: [text(`I mean ${one?.artifactId ?? ''}.`)] }],
      ['the task that made it', { parts: [text('that one')], referenceTaskIds: [ship.id] }]
    ]
    for (const [what, answer] of answers) {
      const asked = await make(runtime, 'refine', { referenceTaskIds: [boat.id, ship.id] })
      t.equal(asked.status.state, 'TASK_STATE_INPUT_REQUIRED')
      t.equal(textOf(onlyOf(await make(runtime, '', { taskId: asked.id, ...answer }))), 'red ship', what)
    }
  })

  await t.test('is recognized in an answer by number, name without extension, or description', async t => {
    const drawn = Object.entries({
      'sail.png': 'a boat',
      '.env': '',
      'cat.txt': `a ${'very '.repeat(100)}black animal`,
      'my_dog.gif': 'a brown animal',
      'dog.png': 'a small animal'
    })
    const earlierArtifacts = drawn.map(([name, description]) => ({
      taskId: 't',
      artifact: { artifactId: `${name}!`, name, description, parts: [text('')] }
    }))
    const choices = artifactChoices({ message: userMessage('refine'), earlierArtifacts })
    const answers: Record<string, string | undefined> = {
      '2': '.env',
      'number 3, please': 'cat.txt',
      'No. 4': 'my_dog.gif',
      'the second one': '.env',
      'The 3rd!': 'cat.txt',
      sail: 'sail.png',
      'the SAIL': 'sail.png',
      'my dog': 'my_dog.gif',
      'the cat': 'cat.txt',
      'the boat': 'sail.png',
      'the brown animal': 'my_dog.gif',
      '6': undefined,
      '0': undefined,
      '2 of them': undefined,
      'the first or the second': undefined,
      'wait a second': undefined,
      the: undefined,
      'a black one': undefined,
      'not the second one': undefined,
      'not the cat': undefined,
      "I don't want the boat": undefined,
      'the animal': undefined
    }
    for (const [answer, name] of Object.entries(answers))
      t.equal(chosenOf(choices, userMessage(answer))?.name, name, answer)
    t.equal(
      artifactChoices({ message: userMessage('make the cat red'), earlierArtifacts }).length,
      5,
      'a request is not read as an answer'
    )
  })

  await t.test(
    'is recognized by its bytes, whatever the form of the base64, and among equal ones by the name or the words',
    async t => {
      const file = (raw: string, filename?: string): Part => ({
        raw,
        ...(filename !== undefined && { filename }),
        mediaType: 'image/png'
      })
      const files: [string, Part][] = [
        ['sail.png', file('+/+/')],
        ['two.png', file('QQ==')],
        ['three.png', file('QQ==')],
        ['far.png', { url: 'https://example.com/far.png' }]
      ]
      const earlierArtifacts = files.map(([name, part], i) => ({
        taskId: `t${i}`,
        artifact: { artifactId: 'x', name, parts: [part] }
      }))
      const choices = artifactChoices({ message: userMessage('refine'), earlierArtifacts })
      const answers: [Part[], string | undefined][] = [
        [[file('-_-_')], 'sail.png'],
        [[text('I mean this.'), file('+/+/')], 'sail.png'],
        [[text('not this'), file('+/+/')], undefined],
        [[file('QQ')], undefined],
        [[file('QQ=='), text('the second one')], 'two.png'],
        [[file('QQ=='), text('the first one')], undefined],
        [[file('QQ==', 'three.png')], 'three.png'],
        [[file('AAAA')], undefined],
        [[file('AAAA'), text('two.png')], 'two.png']
      ]
      for (const [parts, name] of answers)
        t.equal(chosenOf(choices, { ...userMessage(''), parts })?.name, name, JSON.stringify(parts))
      t.match(
        artifactChoices({
          message: { ...userMessage(''), parts: [text('refine this'), file('+/+/')] },
          earlierArtifacts
        }),
        [{ name: 'sail.png' }],
        'in a request'
      )
      for (const words of ['refine, but not the second one', 'not the newest one, please'])
        t.equal(artifactChoices({ message: userMessage(words), earlierArtifacts }).length, 4, words)
      for (const [words, name] of [
        ['the last few', undefined],
        ['the oldest', 'far.png'],
        ['the newest', 'sail.png']
      ] as const)
        t.equal(chosenOf(choices, userMessage(words))?.name, name, words)
    }
  )

  await t.test('is asked for again among those that an answer left', async t => {
    const { runtime, clock } = start(t, { work: artist() })
    for (const name of ['small-boat.png', 'big-boat.png', 'ship.png']) {
      await make(runtime, name)
      clock.increment(1)
    }
    const { id: taskId } = await make(runtime, 'refine')
    const asked = await make(runtime, 'the boat', { taskId })
    t.match(asked.status.message?.parts, [
      { text: 'Which artifact do you mean: big-boat.png or small-boat.png?' },
      { data: {} },
      { data: {} }
    ])
    t.equal(
      onlyOf(await make(runtime, 'the second', { taskId })).name,
      'small-boat.png',
      'by its number in the new list'
    )
    const { id: other } = await make(runtime, 'refine')
    await make(runtime, 'the boat', { taskId: other })
    t.equal(
      onlyOf(await make(runtime, 'the ship, then', { taskId: other })).name,
      'ship.png',
      'the others can still be chosen'
    )
  })

  await t.test('is asked for if there is none, and may be any of the caller’s', async t => {
    const { runtime } = start(t, { work: artist({ what: 'picture' }) })
    const foreign = await make(runtime, 'boat', {}, 'bob')
    const elsewhere = await make(runtime, 'boat ship', { contextId: 'other' })
    const empty = await make(runtime, 'nothing', { contextId: 'other' })
    const boat = elsewhere.artifacts?.[0]?.artifactId
    const { id: taskId, status } = await make(runtime, 'refine')
    t.strictSame(status.message?.parts, [{ text: 'Which picture do you mean? There is none here yet.' }])
    const refused: Part[][] = [
      [referring(foreign)],
      [referring(elsewhere, 'unknown')],
      [referring(empty, 'x')],
      [referring(elsewhere, boat), referring(foreign)],
      [text('boat')]
    ]
    for (const parts of refused) {
      const again = await make(runtime, '', { taskId, parts })
      t.match(again.status, {
        state: 'TASK_STATE_INPUT_REQUIRED',
        message: { parts: [{ text: 'There is no picture of that name.' }] }
      })
    }
    t.match(onlyOf(await make(runtime, '', { taskId, parts: [referring(elsewhere, boat)] })), {
      name: 'boat',
      parts: [{ text: 'red boat' }]
    })
  })

  await t.test('may be absent if it is optional, unless the message references a missing one', async t => {
    const { runtime } = start(t, { work: artist({ optional: true }) })
    t.equal(textOf(onlyOf(await make(runtime, 'refine'))), 'new')
    const { status } = await make(runtime, '', {
      contextId: 'other',
      parts: [{ text: 'refine', metadata: { taskId: 'x', artifactId: 'y' } }]
    })
    t.equal(status.state, 'TASK_STATE_INPUT_REQUIRED')
  })

  await t.test('is asked for in the author’s own words', async t => {
    const prompt: RefiningOptions['prompt'] = (choices, isAgain) =>
      `${isAgain ? 'Nochmal: ' : ''}${choices.map(({ name }) => name).join(' oder ')}?`
    const { runtime } = start(t, { work: artist({ prompt }) })
    await make(runtime, 'Boot Schiff')
    const { id: taskId, status } = await make(runtime, 'refine')
    t.match(status.message?.parts[0], { text: 'Schiff oder Boot?' })
    t.match((await make(runtime, 'was?', { taskId })).status.message?.parts[0], { text: 'Nochmal: Schiff oder Boot?' })
  })

  await t.test('fails the task with the reason if it is erased before it is read', async t => {
    const { runtime } = start(t, { work: artist() })
    const [boat, ship] = [
      await make(runtime, 'boat', { contextId: 'other' }),
      await make(runtime, 'ship', { contextId: 'other' })
    ]
    const { id: taskId } = await make(runtime, '', { parts: [{ text: 'refine' }, referring(boat), referring(ship)] })
    await runtime.erase({ principal: 'anna', contextId: 'other' })
    const { status } = await make(runtime, 'boat', { taskId })
    t.match(status, { state: 'TASK_STATE_FAILED', message: { parts: [{ text: `Task ${boat.id} was not found.` }] } })
  })

  await t.test('fails the task if the store cannot find it', async t => {
    const inner = memoryStore()
    const { runtime } = start(
      t,
      { work: artist() },
      {
        store: {
          ...inner,
          readTask: (scope, id, ...more) =>
            id === 'broken' ? Promise.reject(new Error('disk')) : inner.readTask(scope, id, ...more)
        }
      }
    )
    const { id: taskId } = await make(runtime, 'refine')
    const { status } = await make(runtime, '', {
      taskId,
      parts: [{ text: 'x', metadata: { taskId: 'broken', artifactId: 'y' } }]
    })
    t.match(status, { state: 'TASK_STATE_FAILED', message: { parts: [{ text: 'The work ended with an error.' }] } })
  })
})

await t.test('after a restart', async t => {
  /** Refines slowly. */
  const slow: WorkFunction = async work => {
    if (!wordsOf(work.message).startsWith('refine')) return artist()(work)
    const original = await work.artifactToRefine()
    work.emit(progress('begun'))
    await work.sleep(1000)
    return { artifact: refined(original, `red ${wordsOf(original.artifact)}`) }
  }

  await t.test('work refines the same artifact as before, despite newer versions and names', async t => {
    const life = lives(t, { work: slow })
    await make(life.runtime, 'boat', {}, 'anonymous')
    const { id } = await open(life.runtime, 'refine', { contextId })
    await rest()
    life.clock.increment(1)
    await make(life.runtime, 'boat ship', {}, 'anonymous')
    await life.kill()
    await life.pass(1000)
    t.equal(textOf(onlyOf(await reaches(life.runtime, id, 'completed'))), 'red boat')
    t.strictSame((await life.told(id)).slice(0, 3), ['submitted', 'working', 'working: begun'])
  })

  await t.test('the question and its listed choices are the same; nothing is asked twice', async t => {
    const life = lives(t, { work: slow })
    await make(life.runtime, 'boat ship', {}, 'anonymous')
    const elsewhere = await make(life.runtime, 'canoe', { contextId: 'other' }, 'anonymous')
    const { id: taskId } = await open(life.runtime, 'refine', { contextId })
    await reaches(life.runtime, taskId, 'input-required')
    await make(life.runtime, 'raft', {}, 'anonymous')
    await life.kill()
    await make(life.runtime, 'raft', { taskId }, 'anonymous')
    await life.again()
    await open(life.runtime, '', { taskId, parts: [referring(elsewhere)] })
    await rest()
    await life.kill()
    await life.pass(1000)
    t.equal(textOf(onlyOf(await reaches(life.runtime, taskId, 'completed'))), 'red canoe')
    t.strictSame(await life.told(taskId), [
      'submitted',
      'working',
      'input-required: Which artifact do you mean: ship or boat? ? ?',
      'working',
      'input-required: There is no artifact of that name, or you named several. Say ship or boat. ? ?',
      'working',
      'working: begun',
      'artifact: red canoe',
      'completed'
    ])
    t.strictSame(life.log, [])
  })
})

await t.test("a refinement has its original's name and an id of its own, whatever its content", async t => {
  const original = { artifact: { artifactId: 'v1', name: 'boat.txt', description: 'A boat.', parts: [text('boat')] } }
  for (const content of [
    'red',
    text('red'),
    [text('red')],
    { parts: [text('red')] },
    { ...original.artifact, parts: [text('red')], description: undefined as never }
  ]) {
    t.strictSame(refined(original, content), { parts: [text('red')], name: 'boat.txt' })
  }
  t.strictSame(refined(original, { artifactId: 'v2', description: 'Red.', parts: [text('red')] }), {
    description: 'Red.',
    parts: [text('red')],
    name: 'boat.txt',
    artifactId: 'v2'
  })
  t.strictSame(
    refined({ artifact: { artifactId: 'v1', parts: [text('boat')] } }, 'red'),
    { parts: [text('red')], name: 'v1' },
    'one without a name is listed by its id'
  )
  t.throws(() => refined(original, { parts: [] }), { code: 'InvalidAgentResponse' })
})

await t.test('choices are the newest of each name, and unnamed ones go by id', t => {
  const earlier = (taskId: string, artifactId: string, name?: string): EarlierArtifact => ({
    taskId,
    artifact: { artifactId, parts: [text('x')], ...(name !== undefined && { name }) }
  })
  const earlierArtifacts = [
    earlier('t3', 'a3', 'boat'),
    earlier('t2', 'a2'),
    earlier('t1', 'a1', 'boat'),
    earlier('t1', 'a0', '')
  ]
  const choices = artifactChoices({ message: userMessage('make it red'), earlierArtifacts })
  t.strictSame(choices, [
    { artifactId: 'a3', taskId: 't3', name: 'boat' },
    { artifactId: 'a2', taskId: 't2', name: 'a2' },
    { artifactId: 'a0', taskId: 't1', name: 'a0' }
  ])
  t.strictSame(artifactChoices({ message: userMessage('make a2 red'), earlierArtifacts }), [choices[1]])
  t.strictSame(artifactChoices({ message: userMessage('make a boat of a2'), earlierArtifacts }), choices)
  t.end()
})

await t.test('an answer chooses by these rules', t => {
  const choices = ['boat.png', 'my boat.png', 'Sailboat', '船.png', 'a+b (1)', 'boat_2.png'].map(
    (name, i): ArtifactChoice => ({ artifactId: `a-${i}`, taskId: `t-${i}`, name })
  )
  const table: [answer: string, name: string | undefined][] = [
    ['boat.png', 'boat.png'],
    ['The BOAT.PNG.', 'boat.png'],
    ['my boat.png', 'my boat.png'],
    ['my boat.png, not boat.png', undefined],
    ['the boat', 'boat.png'],
    ['sailboat', 'Sailboat'],
    ['sailboats', undefined],
    ['asailboat', undefined],
    ['boat_2.png', 'boat_2.png'],
    ['船.pngを赤くして', '船.png'],
    ['a+b (1)', 'a+b (1)'],
    ['aab (1)', undefined],
    ['a-3', '船.png'],
    ['', undefined]
  ]
  for (const [answer, name] of table) t.equal(chosenOf(choices, userMessage(answer))?.name, name, answer)
  const alike = [
    { artifactId: 'plan', taskId: 't-1', name: 'Rome' },
    { artifactId: 'plan', taskId: 't-2', name: 'Oslo' }
  ]
  t.equal(chosenOf(alike, userMessage('the plan')), undefined, 'an ambiguous id chooses neither')
  t.equal(chosenOf(alike, userMessage('oslo'))?.taskId, 't-2')
  const [one, two] = choices.map(({ taskId, artifactId }): Part => ({
    text: 'Sailboat',
    metadata: { taskId, artifactId }
  }))
  const referring = (...parts: (Part | undefined)[]) =>
    chosenOf(choices, userMessage('', { parts: parts.flatMap(part => part ?? []) }))?.name
  t.equal(referring(two), 'my boat.png', 'a reference takes precedence over words')
  t.equal(referring(two, two), 'my boat.png')
  t.equal(referring(one, two), undefined)
  t.equal(
    referring({ text: 'Sailboat', metadata: { taskId: 't-0', artifactId: 'a-1' } }),
    undefined,
    'both ids have to match'
  )
  t.equal(referring({ data: null }, { data: { taskId: 't-0' } }, { text: 'Sailboat' }), 'Sailboat')
  t.end()
})

await t.test('a question lists at most 20 artifacts, and an answer may name any', t => {
  const choices = (count: number) =>
    Array.from({ length: count }, (_, i): ArtifactChoice => ({ artifactId: `a${i}`, taskId: 't', name: `n${i}` }))
  t.match(whichArtifact(choices(1), false, {}).parts[0], { text: 'Which artifact do you mean: n0?' })
  t.match(whichArtifact(choices(3), false, {}).parts[0], { text: 'Which artifact do you mean: n0, n1, or n2?' })
  const { parts } = whichArtifact(choices(21), true, {})
  t.match(parts[0], { text: /Say n0, n1, .*, n19, or another\.$/ })
  t.equal(parts.length, 21)
  t.end()
})

/** A chart that makes the artifact red that its message means, or that the words after "refine" mean. */
function repainter(options: RefiningOptions = {}) {
  return setupWork({
    types: { context: {} as { artifact: ArtifactWords; wish: Message | undefined } },
    actors: { artifactToRefine: artifactToRefine(options) }
  }).createMachine({
    context: ({ input: { message } }) => ({
      artifact: 'new',
      wish: wordsOf(message).startsWith('refine ')
        ? { ...message, parts: [text(wordsOf(message).slice(7))] }
        : undefined
    }),
    initial: 'finding',
    states: {
      finding: {
        invoke: {
          src: 'artifactToRefine',
          input: ({ context }) => (context.wish ? { message: context.wish } : undefined),
          onDone: {
            target: 'done',
            actions: assign({
              artifact: ({ context, event: { output } }) =>
                output ? refined(output, `red ${wordsOf(output.artifact)}`) : context.artifact
            })
          }
        }
      },
      done: { type: 'final' }
    },
    output: ({ context: { artifact } }) => ({ artifact })
  })
}

await t.test('an actor finds the artifact for a statechart', async t => {
  await t.test('at once if it is the only one, or the message means it', async t => {
    const life = lives(t, { work: artist() })
    await make(life.runtime, 'boat', {}, 'anonymous')
    await life.restart({ work: repainter() })
    t.equal(textOf(onlyOf(await make(life.runtime, 'refine', {}, 'anonymous'))), 'red boat')
    await life.restart({ work: artist() })
    life.clock.increment(1)
    await make(life.runtime, 'ship raft', {}, 'anonymous')
    await life.restart({ work: repainter() })
    t.equal(textOf(onlyOf(await make(life.runtime, 'refine the ship', {}, 'anonymous'))), 'red ship')
  })

  await t.test('by questions that narrow down, across restarts, or by a reference to any of the caller’s', async t => {
    const life = lives(t, { work: artist() })
    const elsewhere = await make(life.runtime, 'canoe', { contextId: 'other' }, 'anonymous')
    for (const name of ['small-boat.png', 'big-boat.png', 'ship.png']) {
      await make(life.runtime, name, {}, 'anonymous')
      life.clock.increment(1)
    }
    await life.restart({ work: repainter({ what: 'picture' }) })
    const { id: taskId, status } = await make(life.runtime, 'refine', {}, 'anonymous')
    t.equal(stateName(status.state), 'input-required')
    t.match(textOf(status.message), 'Which picture do you mean: ship.png, big-boat.png, or small-boat.png?')
    await life.again()
    const told = async (words: string, more: Partial<Message> = {}) =>
      make(life.runtime, words, { taskId, ...more }, 'anonymous')
    t.match(textOf((await told('the train')).status.message), /There is no picture of that name/)
    await life.kill()
    await life.again()
    t.match(
      textOf((await told('the boat')).status.message),
      'Which picture do you mean: big-boat.png or small-boat.png?'
    )
    t.match(onlyOf(await told('the second')), { name: 'small-boat.png', parts: [{ text: 'red small-boat.png' }] })
    const other = await make(life.runtime, 'refine', {}, 'anonymous')
    const parts = [referring(elsewhere)]
    t.equal(textOf(onlyOf(await make(life.runtime, '', { taskId: other.id, parts }, 'anonymous'))), 'red canoe')
  })

  await t.test('or none, if it is optional and there is none', async t => {
    const { runtime } = start(t, { work: repainter({ optional: true }) })
    t.equal(textOf(onlyOf(await make(runtime, 'refine'))), 'new')
    const { runtime: another } = start(t, { work: repainter() })
    t.match(
      textOf((await make(another, 'refine')).status.message),
      'Which artifact do you mean? There is none here yet.'
    )
  })

  await t.test(
    'and asks again for one that does not exist, and fails with the reason for one that was erased',
    async t => {
      const life = lives(t, { work: artist() })
      const boat = await make(life.runtime, 'boat', { contextId: 'other' }, 'anonymous')
      const ship = await make(life.runtime, 'ship', { contextId: 'other' }, 'anonymous')
      await life.restart({ work: repainter() })
      const { id: taskId } = await make(
        life.runtime,
        '',
        { parts: [{ text: 'refine' }, referring(boat), referring(ship)] },
        'anonymous'
      )
      const unknown = { text: 'x', metadata: { taskId: 'unknown', artifactId: 'y' } }
      const again = await make(life.runtime, '', { taskId, parts: [unknown] }, 'anonymous')
      t.equal(stateName(again.status.state), 'input-required')
      await life.runtime.erase({ principal: 'anonymous', contextId: 'other' })
      t.match((await make(life.runtime, 'boat', { taskId }, 'anonymous')).status, {
        state: 'TASK_STATE_FAILED',
        message: { parts: [{ text: `Task ${boat.id} was not found.` }] }
      })
    }
  )
})

await t.test('helpers of work may ask also with arguments that are no run’s', async t => {
  const original: EarlierArtifact = { taskId: 't', artifact: { artifactId: 'a', parts: [text('boat')] } }
  const found = await findArtifactToRefine({
    message: userMessage('refine'),
    earlierArtifacts: [],
    unloadedTasks: [],
    step: (_: string, find: () => unknown) => find(),
    ask: async () => userMessage('', { parts: [{ text: 'this', metadata: { taskId: 't', artifactId: 'a' } }] }),
    readTask: async () => ({ artifacts: [original.artifact] })
  } as unknown as WorkArguments)
  t.strictSame(found, original)
})

/** Never called: that it compiles, and what does not, is the test. */
export async function refiningIsTyped(work: WorkArguments) {
  const original: EarlierArtifact = await work.artifactToRefine()
  const asked: EarlierArtifact = await work.artifactToRefine({ what: 'picture', optional: false })
  const exact = artifactToRefine({ what: 'picture' })
  const found: EarlierArtifact = {} as OutputFrom<typeof exact>
  const actor = artifactToRefine({ optional: true })
  // @ts-expect-error -- there may be none
  const maybe: EarlierArtifact = {} as OutputFrom<typeof actor>
  // @ts-expect-error -- there may be none
  const perhaps: EarlierArtifact = await work.artifactToRefine({ optional: true })
  refined(original, { description: 'red', parts: [text('x')] })
  // @ts-expect-error -- a refinement keeps the name of its original
  refined(asked, { name: 'other', parts: [text('x')] })
  return [perhaps, found, maybe]
}
