import { signal } from '@preact/signals'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { Chart, ChartId } from '../../feed.ts'
import { type ChartNames, stateName } from '../../story/chart-path.ts'
import { askHub, drawnChart, hello } from '../feed/feed.ts'

/** The marks in a picture: CSS classes by state id and by transition name. */
export interface ChartMarks {
  readonly states: (id: string) => readonly string[]
  readonly transitions: (name: string) => readonly string[]
}

export interface ChartPictureProps {
  /** For screen readers. */
  readonly label: string
  readonly svg: string
  readonly marks: ChartMarks
  /** Whether a scrolling box surrounds it: then the wheel zooms only with Ctrl. */
  readonly scrolls?: boolean
}

/** The CSS classes of marks; the picture's own style knows `active`, `visited`, `taken` and `uncovered`. */
const MARKS = ['active', 'visited', 'taken', 'last', 'uncovered', 'untaken', 'heat-1', 'heat-2', 'heat-3', 'heat-4']

/** The ids of the states that the user has collapsed, by chart. */
const collapsedStates = signal<ReadonlyMap<ChartId, readonly string[]>>(new Map())

const NOTHING: readonly string[] = []

/** The collapsed states of a chart, and its drawing with them, once the hub has sent it. */
function useCollapsed(chart: Chart | undefined) {
  const collapsed = (chart && collapsedStates.value.get(chart.id)) ?? NOTHING
  useEffect(() => {
    if (chart && collapsed.length > 0) askHub({ type: 'draw', chart: chart.id, collapsed })
  }, [chart, collapsed])
  const drawn = drawnChart.value
  const isIts = drawn !== undefined && drawn.chart === chart?.id && drawn.collapsed.join('\n') === collapsed.join('\n')
  const collapse = (ids: readonly string[]) => {
    if (chart) collapsedStates.value = new Map([...collapsedStates.value, [chart.id, ids]])
  }
  return { collapsed, collapse, svg: isIts && collapsed.length > 0 && drawn.svg !== '' ? drawn.svg : undefined }
}

/**
 * A chart that is moved by dragging and by arrow keys, and zoomed by the wheel, + and −; 0 fits it. In a chart of the
 * agent regions and other states with states in them can be collapsed, and in a large one states can be found.
 */
export function ChartPicture({ label, svg, marks, scrolls = false }: ChartPictureProps) {
  const box = useRef<HTMLDivElement>(null)
  const sheet = useRef<HTMLDivElement>(null)
  const panZoom = useRef<PanZoom>(undefined)
  const chart = hello.value?.charts.find(one => one.svg === svg)
  const { collapsed, collapse, svg: collapsedSvg } = useCollapsed(chart)
  const whole = useMemo(() => parsed(svg), [svg])
  const picture = useMemo(() => (collapsedSvg === undefined ? whole : parsed(collapsedSvg)), [whole, collapsedSvg])
  const ids = useMemo(() => statesIn(whole), [whole])
  const groups = useMemo(() => statesIn(whole, '.group').slice(1), [whole])
  const toggle = (id: string) =>
    collapse(collapsed.includes(id) ? collapsed.filter(one => one !== id) : [...collapsed, id])

  useLayoutEffect(() => {
    const { current: outer } = box
    const { current: inner } = sheet
    if (outer && inner) {
      inner.replaceChildren(...(picture ? [picture] : []))
      panZoom.current = new PanZoom(outer, inner, scrolls)
    }
    return () => panZoom.current?.close()
  }, [picture])
  useLayoutEffect(() => {
    if (picture) mark(picture, marks)
    panZoom.current?.place()
  }, [picture, marks])

  return (
    <div class="chart">
      <div
        ref={box}
        class="chart-box"
        role="img"
        aria-label={label}
        tabIndex={0}
        onDblClick={({ clientX, clientY }) => {
          const state = document.elementFromPoint(clientX, clientY)?.closest('.state')?.getAttribute('data-state')
          if (chart && state && groups.includes(state)) toggle(state)
        }}
      >
        <div ref={sheet} class="chart-sheet" />
      </div>
      <div class="chart-find">
        {chart && groups.length > 0 && (
          <Parts groups={groups} collapsed={collapsed} collapse={collapse} toggle={toggle} />
        )}
        {picture && ids.length >= FINDABLE && (
          <FindState
            ids={ids}
            picture={picture}
            show={state => panZoom.current?.showPart(state.querySelector('.box') ?? state)}
            reveal={id => collapse(collapsed.filter(one => !id.startsWith(`${one}.`)))}
          />
        )}
      </div>
      <div class="chart-zoom" role="group" aria-label="Zoom">
        <button type="button" onClick={() => panZoom.current?.zoom(1.25)} title="Zoom in (+)" aria-label="Zoom in">
          +
        </button>
        <button type="button" onClick={() => panZoom.current?.zoom(0.8)} title="Zoom out (−)" aria-label="Zoom out">
          −
        </button>
        <button type="button" onClick={() => panZoom.current?.fit()} title="Fit (0)">
          Fit
        </button>
      </div>
    </div>
  )
}

/** The number of states from which on a picture has a search. */
const FINDABLE = 8

interface PartsProps {
  readonly groups: readonly string[]
  readonly collapsed: readonly string[]
  readonly collapse: (ids: readonly string[]) => void
  readonly toggle: (id: string) => void
}

/** Collapses and expands the states of a chart that have states in them. */
function Parts({ groups, collapsed, collapse, toggle }: PartsProps) {
  return (
    <details class="chart-parts">
      <summary>Parts</summary>
      <div role="group" aria-label="Parts of the chart">
        <button type="button" onClick={() => collapse(groups)}>
          Collapse all
        </button>
        <button type="button" onClick={() => collapse([])}>
          Expand all
        </button>
        {groups.map(id => (
          <label key={id}>
            <input type="checkbox" checked={!collapsed.includes(id)} onChange={() => toggle(id)} />
            {id}
          </label>
        ))}
      </div>
    </details>
  )
}

interface FindStateProps {
  /** Of all states, also of those in collapsed ones. */
  readonly ids: readonly string[]
  readonly picture: SVGSVGElement
  readonly show: (state: Element) => void
  /** Expands the states around one. */
  readonly reveal: (id: string) => void
}

/** Finds states by a part of their names: Enter goes from one to the next. */
function FindState({ ids, picture, show, reveal }: FindStateProps) {
  const [words, setWords] = useState('')
  const [place, setPlace] = useState(0)
  const found = useMemo(() => idsNamed(ids, words), [ids, words])
  const id = found[place % Math.max(1, found.length)]
  useLayoutEffect(() => {
    if (id === undefined) return undefined
    const state = [...picture.querySelectorAll('[data-state]')].find(one => one.getAttribute('data-state') === id)
    if (!state) reveal(id)
    else show(state)
    state?.classList.add('found')
    return () => state?.classList.remove('found')
  }, [id, place, picture])
  const note = found.length === 0 ? 'none' : `${(place % found.length) + 1} of ${found.length}`
  return (
    <form
      role="search"
      aria-label="States of the chart"
      onSubmit={event => {
        event.preventDefault()
        setPlace(place + 1)
      }}
    >
      <input
        type="search"
        aria-label="Find a state"
        placeholder="Find a state"
        value={words}
        onInput={event => {
          setWords(event.currentTarget.value)
          setPlace(0)
        }}
      />
      <span class="quiet" aria-live="polite">
        {words.trim() !== '' && note}
      </span>
    </form>
  )
}

/** The ids of the states whose names contain a text, those first that begin with it. */
function idsNamed(ids: readonly string[], text: string): string[] {
  const wanted = text.trim().toLowerCase()
  if (wanted === '') return []
  const found = ids.filter(id => stateName(id).toLowerCase().includes(wanted))
  const begins = (id: string) => Number(stateName(id).toLowerCase().startsWith(wanted))
  return found.toSorted((one, other) => begins(other) - begins(one))
}

function statesIn(picture: SVGSVGElement | undefined, selector = ''): string[] {
  const states = picture?.querySelectorAll(`${selector}[data-state]`) ?? []
  return Array.from(states, element => element.getAttribute('data-state') ?? '')
}

/** The ids of states and the names of transitions in a picture. */
export function namesIn(svg: string): ChartNames {
  const picture = parsed(svg)
  const namesOf = (attribute: string) =>
    new Set(
      Array.from(picture?.querySelectorAll(`[${attribute}]`) ?? [], element => element.getAttribute(attribute) ?? '')
    )
  return { states: namesOf('data-state'), transitions: [...namesOf('data-transition')] }
}

function parsed(svg: string): SVGSVGElement | undefined {
  const { documentElement } = new DOMParser().parseFromString(svg, 'image/svg+xml')
  return documentElement instanceof SVGSVGElement ? document.importNode(documentElement, true) : undefined
}

function mark(picture: SVGSVGElement, { states, transitions }: ChartMarks): void {
  for (const element of picture.querySelectorAll('[data-state]'))
    setMarks(element, states(element.getAttribute('data-state') ?? ''))
  for (const element of picture.querySelectorAll('[data-transition]'))
    setMarks(element, transitions(element.getAttribute('data-transition') ?? ''))
}

function setMarks(element: Element, wanted: readonly string[]): void {
  for (const name of MARKS) element.classList.toggle(name, wanted.includes(name))
}

const SMALLEST = 0.2
const LARGEST = 4
/** The maximum scale of a fitted chart, so that a small one is not blown up. */
const LARGEST_FIT = 1.15
/** The scale at which labels of 12 px are 11 px high. A larger chart is shown where it is lit, not as a whole. */
const LEGIBLE = 11 / 12
const MARGIN = 16
const KEY_STEP = 60

/** Moves and zooms a sheet within a box: by mouse, touch, wheel and keys. */
class PanZoom {
  readonly #box: HTMLElement
  readonly #sheet: HTMLElement
  readonly #leave = new AbortController()
  readonly #watch: ResizeObserver
  #x = 0
  #y = 0
  #scale = 1
  /** How the sheet is placed whenever the box or the marks change: legibly, as a whole, or as the user moved it. */
  #placed: 'legible' | 'whole' | 'by hand' = 'legible'

  /** `scrolls`: without Ctrl, the wheel scrolls the surrounding box. */
  constructor(box: HTMLElement, sheet: HTMLElement, scrolls: boolean) {
    this.#box = box
    this.#sheet = sheet
    const { signal } = this.#leave
    box.addEventListener('pointerdown', event => this.#drag(event), { signal })
    box.addEventListener('wheel', event => (event.ctrlKey || !scrolls) && this.#wheel(event), {
      signal,
      passive: false
    })
    box.addEventListener('keydown', event => this.#press(event), { signal })
    this.#watch = new ResizeObserver(() => this.place())
    this.#watch.observe(box)
    this.place()
  }

  /** Fits the whole sheet, centred. */
  fit(): void {
    this.#placed = 'whole'
    this.place()
  }

  /** Places the sheet again, unless the user moved it: whole, or if its labels were too small, where it is lit. */
  place(): void {
    if (this.#placed === 'by hand') return
    const { clientWidth, clientHeight } = this.#box
    const { offsetWidth, offsetHeight } = this.#sheet
    if (offsetWidth === 0 || offsetHeight === 0) return
    this.#scale = Math.min(
      (clientWidth - 2 * MARGIN) / offsetWidth,
      (clientHeight - 2 * MARGIN) / offsetHeight,
      LARGEST_FIT
    )
    this.#x = (clientWidth - offsetWidth * this.#scale) / 2
    this.#y = (clientHeight - offsetHeight * this.#scale) / 2
    if (this.#placed === 'legible' && this.#scale < LEGIBLE)
      this.#centre(LEGIBLE, [...this.#sheet.querySelectorAll('.active')].at(-1))
    this.#show()
  }

  /** Shows a part of the sheet in the middle, so large that it is legible. */
  showPart(part: Element): void {
    this.#centre(Math.max(this.#scale, LEGIBLE), part)
    this.#moved()
  }

  /** Shows a part, or the beginning, in the middle at a scale, with as little empty space as possible. */
  #centre(scale: number, part: Element | undefined): void {
    const { clientWidth, clientHeight } = this.#box
    const { offsetWidth, offsetHeight } = this.#sheet
    const sheet = this.#sheet.getBoundingClientRect()
    const lit = part?.getBoundingClientRect()
    const drawn = sheet.width / offsetWidth
    const middle = (start: number, size: number, from: number) => (drawn > 0 ? (start + size / 2 - from) / drawn : 0)
    const placed = (at: number, size: number, room: number) =>
      size * scale <= room
        ? (room - size * scale) / 2
        : Math.min(MARGIN, Math.max(room - size * scale - MARGIN, room / 2 - at * scale))
    this.#x = placed(lit ? middle(lit.left, lit.width, sheet.left) : 0, offsetWidth, clientWidth)
    this.#y = placed(lit ? middle(lit.top, lit.height, sheet.top) : 0, offsetHeight, clientHeight)
    this.#scale = scale
  }

  /** Zooms by a factor, around a point of the box, by default its middle. */
  zoom(factor: number, x = this.#box.clientWidth / 2, y = this.#box.clientHeight / 2): void {
    const scale = Math.min(LARGEST, Math.max(SMALLEST, this.#scale * factor))
    this.#x = x - ((x - this.#x) * scale) / this.#scale
    this.#y = y - ((y - this.#y) * scale) / this.#scale
    this.#scale = scale
    this.#moved()
  }

  /** Removes all listeners. */
  close(): void {
    this.#leave.abort()
    this.#watch.disconnect()
  }

  #drag(start: PointerEvent): void {
    if (start.button !== 0) return
    const from = { x: this.#x - start.clientX, y: this.#y - start.clientY }
    const done = new AbortController()
    const { signal } = done
    this.#box.setPointerCapture(start.pointerId)
    this.#box.addEventListener(
      'pointermove',
      ({ clientX, clientY }) => {
        this.#x = from.x + clientX
        this.#y = from.y + clientY
        this.#moved()
      },
      { signal }
    )
    for (const end of ['pointerup', 'pointercancel'] as const)
      this.#box.addEventListener(end, () => done.abort(), { signal })
  }

  #wheel(event: WheelEvent): void {
    event.preventDefault()
    const { left, top } = this.#box.getBoundingClientRect()
    this.zoom(Math.exp(-event.deltaY / 400), event.clientX - left, event.clientY - top)
  }

  #press(event: KeyboardEvent): void {
    const move = (x: number, y: number) => () => {
      this.#x += x
      this.#y += y
      this.#moved()
    }
    const keys: Readonly<Record<string, () => void>> = {
      '+': () => this.zoom(1.25),
      '=': () => this.zoom(1.25),
      '-': () => this.zoom(0.8),
      '0': () => this.fit(),
      ArrowLeft: move(KEY_STEP, 0),
      ArrowRight: move(-KEY_STEP, 0),
      ArrowUp: move(0, KEY_STEP),
      ArrowDown: move(0, -KEY_STEP)
    }
    const act = event.ctrlKey || event.metaKey ? undefined : keys[event.key]
    if (!act) return
    event.preventDefault()
    act()
  }

  #moved(): void {
    this.#placed = 'by hand'
    this.#show()
  }

  #show(): void {
    this.#sheet.style.transform = `translate(${this.#x}px, ${this.#y}px) scale(${this.#scale})`
  }
}
