import { readFileSync } from 'node:fs'
import t from 'tap'
import type { ActorRow, FromHub, TrafficFrame } from '../../../../adapters/inspector/feed.ts'
import { CHROMIUM } from '../../../fixtures/pages/chromium.ts'
import { drawnChart } from '../../../fixtures/pages/fake-hub.ts'
import { actors, classes, holds, known, openHubPage, row, rows, step, texts } from '../../../fixtures/pages/hub-page.ts'
import { story } from '../../../fixtures/pages/page-agent.ts'
import { until } from '../../../fixtures/runtime/runtime-helpers.ts'

await t.test('the parts of the page', { skip: CHROMIUM === undefined && 'no Chromium on this machine' }, async t => {
  await t.test('the list is live, filtered by search and state, and navigable by keys', async t => {
    const { page, hub, troubles } = await openHubPage(t)
    t.match(await page.innerText('.tasks .empty'), /npx taskchart send ws:/, 'it says what to do without a task')
    await hub.tell(known([...rows(1, 4), row(4, { state: 'TASK_STATE_FAILED', title: 'went wrong' })]))
    await page.waitForSelector('.tasks [role=option] >> nth=3')
    t.match(
      await texts(page, '.task-title'),
      ['went wrong', 'task number 3', 'task number 2', 'task number 1'],
      'the newest is first'
    )
    t.equal(await page.locator('.heading').count(), 0, 'a task that is alone in its context stands for it')
    t.match(
      await page.innerText('[aria-selected=true].row'),
      /went wrong[^]*failed[^]*2 moments/,
      'the first one is selected'
    )
    await hub.tell(known([row(3, { state: 'TASK_STATE_COMPLETED', generation: 7 })], ['task-1']))
    await page.waitForSelector('.state-completed')
    t.match((await texts(page, '.tasks [role=option]'))[1], /completed[^]*7 moments/)
    // As on a busy machine, where no picture is drawn between two keys.
    await page.evaluate('window.draw = window.requestAnimationFrame; window.requestAnimationFrame = () => 0')
    await page.keyboard.press('/')
    await page.keyboard.type('wrong')
    await until(async () => (await texts(page, '.task-title')).length === 1)
    await page.fill('#search', '')
    await page.selectOption('.tasks select', 'done')
    await until(async () => (await texts(page, '.task-title')).join() === 'task number 3')
    await page.selectOption('.tasks select', 'all')
    await page.keyboard.press('Escape')
    await page.keyboard.press('j')
    await holds(page, "document.querySelector('[aria-selected=true].row')?.innerText.includes('number 3')")
    await page.keyboard.press('k')
    await holds(page, "document.querySelector('[aria-selected=true].row')?.innerText.includes('went wrong')")
    await page.keyboard.press('End')
    await holds(page, "document.querySelector('[aria-selected=true].row')?.innerText.includes('number 2')")
    t.match(page.url(), /context=context-2&task=task-2/, 'the address contains the selection')
    await until(() => hub.asked.some(asked => asked.type === 'watch' && asked.contextId === 'context-2'))
    await page.evaluate('window.requestAnimationFrame = window.draw')
    await hub.tell(known([row(5, { contextId: 'context-2' })]))
    await page.waitForSelector('.heading >> text=2 tasks')
    t.same(troubles, [])
  })

  await t.test('a list of ten thousand tasks stays smooth while five thousand more arrive', async t => {
    const { page, hub } = await openHubPage(t)
    for (let from = 0; from < 10_000; from += 1000) await hub.tell(known(rows(from, from + 1000)))
    await holds(page, "document.querySelector('.tasks option').textContent === 'All (10000)'")
    const metrics = await page.context().newCDPSession(page)
    await metrics.send('Performance.enable', { timeDomain: 'threadTicks' })
    const cpuMs = async () =>
      ((await metrics.send('Performance.getMetrics')).metrics.find(({ name }) => name === 'TaskDuration')?.value ??
        NaN) * 1000
    const before = await cpuMs()
    for (let from = 10_000; from < 15_000; from += 100) {
      await hub.tell(known(rows(from, from + 100)))
      await page.mouse.wheel(0, 400)
    }
    await holds(page, `document.querySelector('.tasks option').textContent === 'All (10000)'`)
    const meanMs = ((await cpuMs()) - before) / 50
    t.ok(meanMs < 50, `a hundred more tasks take the page ${meanMs} ms of processor time, of at most 50`)
    t.ok((await page.locator('.tasks .row').count()) < 80, 'only visible rows exist')
    await page.hover('.tasks .rows')
    await page.keyboard.press('Escape')
    await page.keyboard.press('End')
    await holds(page, "document.querySelector('[aria-selected=true].row')?.innerText.includes('task number 5000')")
    t.match(await page.innerText('[aria-selected=true].row'), 'task number 5000', 'the oldest five thousand are gone')
  })

  await t.test('rows that are inserted above do not move the visible ones', async t => {
    const { page, hub } = await openHubPage(t)
    await hub.tell(known(rows(0, 500)))
    await page.waitForSelector('.tasks [role=option]')
    await page.evaluate("document.querySelector('.tasks .rows').scrollTop = 4800")
    await holds(page, "!document.body.innerText.includes('task number 499')")
    const place =
      "(() => { const one = [...document.querySelectorAll('.tasks .row')].find(row => row.innerText.includes('number 400')); return one && Math.round(one.getBoundingClientRect().top) })()"
    await holds(page, `${place} !== undefined`)
    const before = await page.evaluate(place)
    await hub.tell(known(rows(500, 600)))
    await holds(page, "document.querySelector('.tasks option').textContent === 'All (600)'")
    t.type(before, 'number')
    t.equal(await page.evaluate(place), before)
  })

  await t.test('the chart lights the current state, and traces its path', async t => {
    const { page, hub, show } = await openHubPage(t)
    await hub.tell(known([row(1)]))
    await until(() => hub.asked.some(asked => asked.type === 'watch' && asked.contextId === 'context-1'))
    t.match(await page.innerText('.path'), 'The steps of Painter were not recorded')
    await hub.tell({ type: 'actors', contextId: 'context-1', rows: actors, gone: [] })
    const micro = (n: number, state: string, transitions: string[]) =>
      step(n, { kind: 'microstep', states: ['painter', `painter.${state}`], transitions, generation: n })
    await hub.tell({
      type: 'steps',
      contextId: 'context-1',
      steps: [micro(1, 'choosing', []), micro(2, 'painting', ['choosing to painting'])]
    })
    await page.waitForSelector('[data-transition="choosing to painting"].taken', { state: 'attached' })
    t.match(
      await classes(page, '[data-state]'),
      [/active/, /visited/, /active/, /state leaf$/],
      'the chart, choosing, painting, painted'
    )
    t.match(await page.innerText('.path'), 'Now: painting')
    await hub.tell({ type: 'actors', contextId: 'another', rows: [], gone: ['x:2'] })
    await hub.tell({
      type: 'actors',
      contextId: 'context-1',
      rows: actors.map(actor => ({
        ...actor,
        states: actor.chart ? ['painter', 'painter.painted'] : [],
        status: 'done' as const
      })),
      gone: []
    })
    await hub.tell({
      type: 'steps',
      contextId: 'context-1',
      steps: [micro(2, 'choosing', ['never']), micro(3, 'painted', ['painting to painted'])]
    })
    await page.waitForSelector('[data-state="painter.painted"].active')
    await page.waitForSelector('.trail li:nth-child(3)')
    t.match(await texts(page, '.trail li'), ['choosing', 'painting', 'painted'], 'a known step is ignored')
    t.match(await page.innerText('.chart-panel select'), 'work, done')
    t.same(await page.locator('.last').count(), 1)

    const place = () => page.locator('.chart-sheet').getAttribute('style')
    const fitted = await place()
    await page.focus('.chart-box')
    await page.keyboard.press('+')
    const nearer = await place()
    t.not(nearer, fitted, '+ zooms in')
    await page.keyboard.press('ArrowLeft')
    t.not(await place(), nearer, 'arrows move it')
    await page.hover('.chart-box')
    await page.mouse.down()
    await page.mouse.move(700, 500)
    await page.mouse.up()
    await page.mouse.wheel(0, -200)
    await page.keyboard.press('0')
    t.equal(await place(), fitted, '0 fits it in')

    const [svg] = await Promise.all([page.waitForEvent('download'), page.click('.saves >> text=SVG')])
    t.equal(svg.suggestedFilename(), 'Painter.svg')
    t.match(
      readFileSync(await svg.path(), 'utf8'),
      /^<svg[^]*state leaf (?:visited )?active/,
      'the picture that is saved has its marks'
    )
    const [mermaid] = await Promise.all([page.waitForEvent('download'), page.click('.saves >> text=Mermaid')])
    t.match(readFileSync(await mermaid.path(), 'utf8'), 'stateDiagram-v2')
    const [source] = await Promise.all([page.waitForEvent('download'), page.click('.saves >> text=XState')])
    t.equal(source.suggestedFilename(), 'Painter.js')
    t.match(readFileSync(await source.path(), 'utf8'), 'createMachine')
    await show('paths')
    t.match(await page.innerText('#part'), 'Run the tests')
    await hub.tell({
      type: 'coverage',
      chart: 'work',
      atMs: Date.now(),
      reached: { states: ['painter', 'painter.choosing'], transitions: ['choosing to painting'] },
      missing: [
        { name: 'painting to painted', why: 'no case paints' },
        { name: 'painter.painted', why: 'nothing leads there' }
      ]
    })
    await page.waitForSelector('[data-transition="painting to painted"].uncovered', { state: 'attached' })
    t.match(await page.innerText('#part'), /2 not reached[^]*no case paints/)
    t.match(await classes(page, '[data-state]'), [/visited/, /visited/, /leaf$/, /uncovered/])
  })

  await t.test('Paths shows what tasks took, asked for only while it is shown', async t => {
    const child = {
      ...drawnChart('child:dry', ['drying', 'drying.wet'], ['wet stays']),
      title: 'dry, which the work starts'
    }
    const { page, hub, show, troubles } = await openHubPage(t, '#part=paths', [child])
    const heat = (counts: readonly [number, number]): FromHub => ({
      type: 'heat',
      charts: [
        {
          chart: 'work',
          transitions: ['choosing to painting', 'painting to painted'].map((name, i) => ({
            name,
            count: counts[i] ?? 0
          }))
        },
        { chart: 'child:dry', transitions: [{ name: 'wet stays', count: 7 }] }
      ]
    })
    const marked = (name: string, mark: string) =>
      page.waitForSelector(`[data-transition="${name}"].${mark}`, { state: 'attached' })
    const asks = () => hub.asked.filter(({ type }) => type === 'heat').length
    await show('paths')
    await page.waitForSelector('#part select')
    t.equal(asks(), 0)
    await page.selectOption('#part select', 'tasks')
    await until(() => asks() > 0)
    t.match(await page.innerText('#part'), 'Reading the counts')
    await hub.tell({ type: 'heat', charts: [], error: 'no disk' })
    await page.waitForSelector('[role=alert] >> text=no disk')
    await hub.tell(heat([0, 0]))
    await marked('choosing to painting', 'untaken')
    t.match(
      await page.innerText('#part'),
      /Tasks took 0 of 2 transitions[^]*a kill may lose the last second[^]*never choosing to painting/
    )
    await hub.tell({
      type: 'coverage',
      chart: 'work',
      atMs: 1,
      reached: { states: [], transitions: ['choosing to painting'] },
      missing: []
    })
    await hub.tell(heat([1200, 0]))
    await marked('choosing to painting', 'heat-4')
    t.match(await texts(page, '[aria-label=Transitions] li'), [
      'never painting to painted no test takes it',
      '1,200 × choosing to painting'
    ])
    await hub.tell(heat([1200, 1]))
    await marked('painting to painted', 'heat-1')
    t.equal(await page.locator('.untaken').count(), 0)
    await page.selectOption('#part select >> nth=1', 'child:dry')
    await marked('wet stays', 'heat-4')
    const before = asks()
    await until(() => asks() > before, 'it asks again')
    await page.selectOption('#part select >> nth=0', 'tests')
    await page.waitForSelector('text=Everything was reached')
    t.same(troubles, [])
    await hub.tell({
      type: 'hello',
      agent: { name: 'Sculptor', description: '', version: '2' },
      url: hub.url.replace('http', 'ws'),
      charts: [child, { ...child, id: 'work' }],
      nowMs: Date.now(),
      instance: 'two',
      authorizes: false,
      tests: false,
      proves: false,
      counts: false
    })
    await page.waitForSelector('text=Sculptor')
    await page.waitForSelector('#part option[value=tasks]', { state: 'detached' })
  })

  await t.test('Paths proves properties, and draws a counterexample in the chart', async t => {
    const { page, hub, show, troubles } = await openHubPage(t)
    const step = (move: string, states: readonly string[], transitions: readonly string[], told = '') => ({
      move,
      states,
      transitions,
      told
    })
    const steps = [
      step('opened by "a boat"', ['painter', 'painter.choosing'], [], 'tells WORKING'),
      step('the client says "red"', ['painter', 'painter.painting'], ['choosing to painting']),
      step('1 ms passes', ['painter', 'painter.painting'], [])
    ]
    const walk = (loops: number, ending: string) => ({
      steps,
      loops,
      ending,
      alone: 'npx taskchart prove agent.ts --only x'
    })
    const verdicts = [
      {
        property: 'it is red',
        outcome: 'confirmed' as const,
        means: 'the real chart walks it',
        says: '',
        walk: walk(0, '')
      },
      {
        property: 'it ends',
        outcome: 'possible' as const,
        means: 'guards decide',
        says: 'if isDry',
        walk: walk(1, 'and for ever again:')
      },
      {
        property: 'it dries',
        outcome: 'confirmed' as const,
        means: 'the real chart walks it',
        says: '',
        walk: walk(0, 'and then nothing goes on')
      },
      {
        property: 'it never throws',
        outcome: 'proved' as const,
        means: 'it holds',
        says: 'in 9 configurations, if whatever waits goes on'
      },
      {
        property: 'it is known',
        outcome: 'unknown' as const,
        means: 'not everything was seen',
        says: 'there are more configurations than the limit'
      }
    ]
    const proof = {
      atMs: Date.now(),
      head: '9 configurations, all, opened by "a boat"',
      bounds: ['No case gives results of dry.'],
      verdicts
    }
    await show('paths')
    await page.selectOption('#part select', 'proof')
    await page.click('button >> text=Prove')
    await until(() => hub.asked.some(({ type }) => type === 'prove'))
    await hub.tell({ type: 'proving', isRunning: true })
    await page.waitForSelector('[role=status] >> text=exploring the chart')
    t.ok(await page.isDisabled('button >> text=Prove'))
    await hub.tell({ type: 'proving', isRunning: false, error: 'no cases' })
    await page.waitForSelector('[role=alert] >> text=no cases')
    await hub.tell({ type: 'proving', isRunning: false, proof })
    await page.waitForSelector('text=4 not proved')
    t.match(
      await page.innerText('#part'),
      /9 configurations, all[^]*proved (?:just now|\d+ s ago)[^]*No case gives results of dry\./
    )
    t.strictSame(await texts(page, '[aria-label=Properties] li'), [
      'confirmed it is red',
      'possible it ends if isDry',
      'confirmed it dries',
      'proved it never throws in 9 configurations, if whatever waits goes on',
      'unknown it is known there are more configurations than the limit'
    ])
    t.equal(await page.getAttribute('.verdict-unknown', 'title'), 'not everything was seen')
    await page.focus('[aria-label=Properties] button')
    await page.keyboard.press('Enter')
    await page.waitForSelector('[data-transition="choosing to painting"].taken', { state: 'attached' })
    t.match(await classes(page, '[data-state]'), [/visited/, /visited/, /active/, /leaf$/])
    t.strictSame(await texts(page, '[aria-label="A counterexample"] li'), [
      'opened by "a boat" tells WORKING',
      'the client says "red"',
      '1 ms passes'
    ])
    t.strictSame(await texts(page, '[aria-label="A counterexample"] [aria-current=step]'), ['1 ms passes'])
    t.match(
      await page.innerText('#part'),
      /confirmed: the real chart walks it[^]*npx taskchart prove agent\.ts --only x/
    )
    await page.click('text=← All')
    await page.click('text=it ends')
    t.strictSame(await texts(page, '[aria-label="A counterexample"] .wrong'), ['and for ever again: 1 ms passes'])
    await page.click('text=← All')
    await page.click('text=it dries')
    await page.waitForSelector('p >> text=and then nothing goes on')
    await hub.tell({ type: 'proving', isRunning: false, proof: { ...proof, verdicts: verdicts.slice(3, 4) } })
    await page.waitForSelector('text=Everything is proved')
    t.same(troubles, [])
    await hub.tell({
      type: 'hello',
      agent: { name: 'Sculptor', description: '', version: '2' },
      url: hub.url.replace('http', 'ws'),
      charts: [drawnChart('work', ['painter'], [])],
      nowMs: Date.now(),
      instance: 'two',
      authorizes: false,
      tests: false,
      proves: false,
      counts: false
    })
    await page.waitForSelector('text=npx taskchart prove AGENT.ts')
  })

  await t.test('the sequence shows sender and receiver of each event, and one step in full', async t => {
    const { page, hub, show } = await openHubPage(t)
    await hub.tell(known([row(1)]))
    await until(() => hub.asked.some(asked => asked.type === 'watch' && asked.contextId === 'context-1'))
    await show('sequence')
    t.match(await page.innerText('#part'), 'Send a message')
    const paint: ActorRow = {
      sessionId: 'x:3',
      name: '0.painter.painting',
      kind: 'child',
      source: 'paint',
      taskId: 'task-1',
      parent: 'x:2',
      status: 'done',
      states: []
    }
    await hub.tell({ type: 'actors', contextId: 'context-1', rows: [...actors, paint], gone: [] })
    const { from: _, ...outside } = step(1, { to: 'x:0', event: { type: 'message.received', words: 'a boat' } })
    await hub.tell({
      type: 'steps',
      contextId: 'context-1',
      steps: [
        outside,
        step(2),
        step(3, { kind: 'emitted' }),
        step(4, { kind: 'microstep', states: ['painter', 'painter.painted'] }),
        step(5, { taskId: 'task-2', from: 'x:9', to: 'x:9' }),
        step(6, { from: 'x:3', event: { type: 'xstate.done.actor.0.painter.painting' } })
      ]
    })
    await page.waitForSelector('.sequence-panel .row >> nth=3')
    t.match(await texts(page, '.lane'), [/client/, /context/, /task/, /work/, /paint/])
    t.match(
      await texts(page, '.step-words'),
      ['message.received', 'event.2', 'event.3', 'is done'],
      'not the chart’s steps, nor those of other tasks'
    )
    await page.click('text=chart steps')
    await page.click('text=only this task')
    await until(async () => (await texts(page, '.step-words')).length === 6)
    await page.fill('.sequence-panel input[type=search]', 'a boat')
    await until(async () => (await texts(page, '.step-words')).length === 1)
    await page.click('.sequence-panel [role=option]')
    t.match(await page.innerText('.detail'), /client → context[^]*"words": "a boat"/)
    await page.fill('.sequence-panel input[type=search]', '')
    const many = Array.from({ length: 3000 }, (_, i) => step(10 + i))
    await hub.tell({ type: 'steps', contextId: 'context-1', steps: many })
    await hub.tell({ type: 'lost', what: 'steps', count: 17 })
    await holds(page, "document.querySelector('.sequence-panel .tools').innerText.includes('2,000 steps, 17 missed')")
    t.match((await texts(page, '.step-words')).at(-1), 'event.3009', 'it stays at its end')
  })

  await t.test('frames are requested only while they are shown and not paused', async t => {
    const { page, hub, show } = await openHubPage(t)
    const frame = (n: number, more: Partial<TrafficFrame> = {}): TrafficFrame => ({
      n,
      atMs: 1_000_000,
      connection: 'c1',
      direction: 'in',
      bytes: 20,
      text: '{"id":1,"method":"GetTask"}',
      ...more
    })
    await show('frames')
    await until(() => hub.asked.some(asked => asked.type === 'frames' && asked.on))
    await hub.tell({
      type: 'frames',
      frames: [
        frame(1),
        frame(2, { direction: 'out', connection: 'c2', text: '{"id":1,"result":{"task":{}}}' }),
        frame(3, { direction: 'out', text: '{"id":2,"error":{"code":-32001}}' }),
        frame(4, { bytes: 9000, text: '{"cut' })
      ]
    })
    await page.waitForSelector('.frames-panel .row >> nth=3')
    t.match(await texts(page, '.frame-what'), ['GetTask', 'task', 'error', 'result'])
    await page.selectOption('[aria-label="Which connection"]', 'c2')
    await until(async () => (await texts(page, '.frame-what')).join() === 'task')
    await page.selectOption('[aria-label="Which connection"]', '')
    await page.selectOption('[aria-label="Which direction"]', 'in')
    await until(async () => (await texts(page, '.frame-what')).length === 2)
    await page.fill('.frames-panel input[type=search]', 'cut')
    await until(async () => (await texts(page, '.frame-what')).length === 1)
    await page.click('.frames-panel [role=option]')
    t.match(await page.innerText('.detail'), /only its beginning[^]*\{"cut/)
    await page.fill('.frames-panel input[type=search]', '')
    await page.selectOption('[aria-label="Which direction"]', '')
    await hub.tell({ type: 'frames', frames: Array.from({ length: 5000 }, (_, i) => frame(10 + i)) })
    await holds(page, "document.querySelector('.frames-panel .tools').innerText.includes('2,000 frames')")
    await page.click('text=Clear')
    await page.click('text=Pause')
    await until(() => hub.asked.some(asked => asked.type === 'frames' && !asked.on))
    await page.click('text=Pause')
    await show('chart')
    await until(() => hub.asked.filter(({ type }) => type === 'frames').length === 3)
    t.same(hub.asked.at(-1), { type: 'frames', on: true }, 'a message under another part is visible')
  })

  await t.test("a form is generated from a question's schema, and gives a valid answer", async t => {
    const { page, runtime, say, troubles } = await openHubPage(t)
    await say('order')
    await page.waitForSelector('.question')
    await page.click('.question .main')
    t.ok(await page.locator('.question').count(), 'a required field has to be filled in')
    await page.fill('label:has-text("dish") + input', 'soup')
    await page.fill('label:has-text("people") + input', '4')
    await page.selectOption('label:has-text("spice") + select', { label: 'hot' })
    await page.fill('label:has-text("day") + input', '2027-05-01')
    await page.check('label:has-text("takeAway") + input')
    await page.fill('[aria-label="sides 1"]', 'bread')
    await page.click('text=One more')
    await page.fill('[aria-label="sides 2"]', 'salad')
    await page.fill('label:has-text("street") + input', 'Harbour 1')
    await page.fill('label:has-text("notes") + textarea', 'no JSON')
    await page.click('.question .main')
    t.match(await page.innerText('.question .wrong'), 'notes has to be JSON')
    await page.fill('label:has-text("notes") + textarea', '{ "for": "Anna" }')
    await page.click('.question .main')
    await page.waitForSelector('.artifact')
    const { tasks } = await runtime.listTasks({ includeArtifacts: true })
    const order = {
      dish: 'soup',
      people: 4,
      spice: 'hot',
      day: '2027-05-01',
      takeAway: true,
      sides: ['bread', 'salad'],
      address: { street: 'Harbour 1' },
      notes: { for: 'Anna' }
    }
    t.match(tasks[0]?.artifacts?.[0]?.parts, [{ data: order }])
    t.same(troubles, [])
  })

  await t.test('text, files and data are sent together, and answers are shown by their type', async t => {
    const { page, runtime, say, troubles, asked } = await openHubPage(t)
    await page.keyboard.press('m')
    await say('hello')
    await page.waitForSelector('.message-agent')
    t.match(await texts(page, '.message'), [/hello/, /Hello yourself/], 'a message without a task')
    await page.fill('#composer', 'three')
    await page.click('text=Data')
    await page.fill('[aria-label="Data as JSON"]', '{ nonsense')
    await page.click('.composer .main')
    t.match(await page.innerText('.composer .wrong'), 'has to be JSON')
    await page.fill('[aria-label="Data as JSON"]', '{ "n": 1 }')
    await page.setInputFiles('input[type=file]', { name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from('text') })
    await page.click('.composer .main')
    await page.waitForSelector('text=three, with 3 parts')
    const { tasks } = await runtime.listTasks({ historyLength: 5 })
    t.match(tasks[0]?.history?.[0]?.parts, [
      { text: 'three' },
      { raw: 'dGV4dA==', filename: 'a.txt', mediaType: 'text/plain' },
      { data: { n: 1 } }
    ])
    await say('things')
    await page.waitForSelector('.artifact img')
    const things = await page.innerText('.artifact >> nth=-1')
    t.match(things, /<b>not bold<\/b>[^]*colour\s+red[^]*<script>document.title/, 'HTML is text')
    t.equal(await page.locator('a[href^="javascript"]').count(), 0)
    t.equal(await page.locator('a[href="https://example.com/elsewhere"]').count(), 1)
    t.equal(await page.locator('a[download="all.zip"]').count(), 1)
    t.equal(await page.title(), 'taskchart')
    t.same(troubles, [])
    t.same(
      asked.filter(url => !/^(?:http|ws|blob:http):\/\/127\.0\.0\.1:/.test(url)),
      [],
      'no other host is contacted'
    )
  })

  await t.test('chunks appear as they arrive, tasks are canceled, and the hub authorizes', async t => {
    const { page, hub, say } = await openHubPage(t)
    await say('story')
    await page.waitForSelector('.artifact .markdown')
    t.equal(await page.innerText('.artifact .markdown'), 'Once upon')
    story.goOn.resolve()
    await page.waitForSelector('text=Once upon a time')
    await say('wait')
    await page.click('text=Cancel the task')
    await page.waitForSelector('.run .state-canceled')
    await say('login')
    await page.waitForSelector('.question')
    t.match(await page.innerText('.question-open'), 'Please log in.')
    await page.fill('.question input', 'secret')
    await page.click('.question .main')
    const asked = await until(() => hub.asked.find(({ type }) => type === 'authorize'))
    t.match(asked, { type: 'authorize', data: 'secret' })
    await hub.tell({ type: 'authorized', taskId: 'x', error: 'Nobody knows it.' })
    await page.waitForSelector('text=Nobody knows it.')
  })

  await t.test('the timeline shows the task at each generation', async t => {
    const { page, hub, say, show, runtime } = await openHubPage(t)
    story.goOn.resolve()
    await say('story')
    await page.waitForSelector('text=Once upon a time')
    const {
      tasks: [task]
    } = await runtime.listTasks({})
    const { id = '', contextId = '' } = task ?? {}
    await until(() => hub.asked.some(asked => asked.type === 'watch' && asked.contextId === contextId))
    const micro = (n: number, generation: number, state: string) =>
      step(n, { kind: 'microstep', taskId: id, generation, states: ['painter', `painter.${state}`], transitions: [] })
    await hub.tell({ type: 'actors', contextId, rows: [], gone: [] })
    await hub.tell({
      type: 'steps',
      contextId,
      steps: [micro(1, 3, 'choosing'), micro(2, 5, 'painting'), micro(3, 7, 'painted')]
    })
    await show('timeline')
    await page.waitForSelector('[data-state="painter.painted"].active')
    t.match(await page.innerText('.then'), /completed[^]*Once upon a time/)
    const back = page.locator('[aria-label="One moment back"]')
    await page.focus('[aria-label=Moment]')
    await page.keyboard.press('Home')
    await page.waitForSelector('.then-state .state-submitted')
    t.match(await page.innerText('.then'), /had not started at this generation[^]*None yet/, 'it says what it lacks')
    t.ok(await back.isDisabled())
    await page.click('.timeline [role=option] >> nth=3')
    await page.waitForSelector('[data-state="painter.painting"].active')
    t.match(await page.innerText('.then'), /working[^]*Once upon\n[^]*story[^]*Once more…/)
    t.notMatch(await page.innerText('.then'), 'a time')
    await page.click('text=Newest')
    await page.waitForSelector('.then-state .state-completed')
  })

  await t.test('the chart of an unwatched task is rebuilt at each generation from stored events', async t => {
    const { page, hub, say, show, runtime } = await openHubPage(t)
    story.goOn.resolve()
    await say('story')
    await page.waitForSelector('text=Once upon a time')
    const {
      tasks: [task]
    } = await runtime.listTasks({})
    await hub.tell({ type: 'actors', contextId: task?.contextId ?? '', rows: [], gone: [] })
    await show('chart')
    await page.waitForSelector('[data-state="task.completed"].active')
    t.match(
      await page.innerText('.path'),
      /Now: completed[^]*submitted[^]*working[^]*completed[^]*rebuilt from the stored events/
    )
    t.match(await classes(page, '[data-transition*="xstate.done.actor.work"]'), [/taken/])
    for (let back = 0; back < 20; back += 1) await page.keyboard.press(',')
    await page.waitForSelector('[data-state="task.active.submitted"].active')
    t.match(await page.innerText('.time-bar'), /moment 2 of \d+\s+submitted/)
    await page.keyboard.press('.')
    await page.waitForSelector('[data-state="task.active.started.working"].active')
    await page.click('.time-bar >> text=Newest')
    await page.waitForSelector('[data-state="task.completed"].active')
  })

  await t.test('the page reconnects after a lost connection, and resets for another process', async t => {
    const { page, hub } = await openHubPage(t)
    await hub.tell(known([row(1)]))
    await until(() => hub.asked.some(asked => asked.type === 'watch' && asked.contextId === 'context-1'))
    await hub.tell({ type: 'actors', contextId: 'context-1', rows: actors, gone: [] })
    await hub.tell({
      type: 'steps',
      contextId: 'context-1',
      steps: [step(1, { kind: 'microstep', states: ['painter', 'painter.choosing'], transitions: [] })]
    })
    await page.waitForSelector('[data-state="painter.choosing"].visited')
    hub.refuse(true)
    hub.cutAll()
    await page.waitForSelector('.link-lost')
    t.match(await page.innerText('.page-header'), 'connection lost, reconnecting')
    hub.refuse(false)
    await page.waitForSelector('.link-there')
    t.same(
      hub.asked.findLast(({ type }) => type === 'watch'),
      { type: 'watch', contextId: 'context-1', afterStep: 1, instance: 'one' }
    )
    t.equal(await page.locator('[data-state="painter.choosing"].visited').count(), 1, 'earlier steps are still shown')
    await hub.tell({ type: 'crash', taskId: 'task-2', error: 'Error: of another task' })
    await hub.tell({ type: 'crash', taskId: 'task-1', error: 'Error: <b>boom</b>\n    at work (agent.ts:3:1)' })
    await page.waitForSelector('.task-error')
    t.match(
      await page.innerText('.task-error'),
      /^The work of this task ended with an error\. Clients see only that it did\.\s+Error: <b>boom<\/b>\n {4}at work \(agent\.ts:3:1\)\s*$/
    )
    await hub.tell({ type: 'reload', error: 'agent.ts:3: no such thing' })
    await page.waitForSelector('text=agent.ts:3: no such thing')
    await hub.tell({ type: 'reload', error: null })
    await page.waitForSelector('.banner', { state: 'detached' })
    await hub.tell({ type: 'reload', error: 'agent.ts:4: nor this' })
    await hub.tell({
      type: 'hello',
      agent: { name: 'Sculptor', description: '', version: '2' },
      url: hub.url.replace('http', 'ws'),
      charts: [],
      nowMs: Date.now(),
      instance: 'two',
      authorizes: false,
      tests: false,
      proves: false,
      counts: false
    })
    await page.waitForSelector('text=Sculptor')
    t.equal(await page.locator('.banner').count(), 0, 'a reloaded agent has no error')
    t.match(await page.innerText('#part'), 'no charts')
  })

  await t.test('the page works with keys alone, light and dark, wide and narrow', async t => {
    const { page, hub, troubles } = await openHubPage(t, '#part=sequence')
    t.equal(await page.getAttribute('#tab-sequence', 'aria-selected'), 'true', 'the address says which part')
    await page.focus('#tab-sequence')
    await page.keyboard.press('ArrowRight')
    t.equal(await page.getAttribute('#tab-timeline', 'aria-selected'), 'true')
    await page.keyboard.press('End')
    t.equal(await page.getAttribute('#tab-paths', 'aria-selected'), 'true')
    await page.keyboard.press('6')
    t.equal(await page.getAttribute('#tab-talk', 'aria-selected'), 'true')
    await page.keyboard.press('?')
    await page.waitForSelector('dialog[open]')
    await page.keyboard.press('Escape')
    await page.waitForSelector('dialog[open]', { state: 'detached' })
    const ground = () => page.evaluate('getComputedStyle(document.body).backgroundColor')
    const light = await ground()
    await page.emulateMedia({ colorScheme: 'dark' })
    const dark = await ground()
    t.not(dark, light)
    await page.click('text=Theme: system')
    t.equal(await ground(), light, 'light by choice')
    await page.click('text=Theme: light')
    await page.emulateMedia({ colorScheme: 'light' })
    t.equal(await ground(), dark, 'dark by choice')
    await page.reload()
    await page.waitForSelector('text=Theme: dark')
    await hub.tell(known(rows(0, 100)))
    await page.setViewportSize({ width: 700, height: 900 })
    t.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), 'the list fits')
    await page.click('.tasks [role=option] >> nth=0')
    for (const part of ['story', 'chart', 'sequence', 'timeline', 'frames', 'talk', 'paths']) {
      await page.click(`#tab-${part}`)
      t.ok(
        await page.evaluate(
          'document.documentElement.scrollWidth <= innerWidth && document.documentElement.scrollHeight <= innerHeight'
        ),
        `${part} fits in`
      )
    }
    t.same(troubles, [])
  })
})
