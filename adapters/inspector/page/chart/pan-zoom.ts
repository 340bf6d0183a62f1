const SMALLEST = 0.2
const LARGEST = 4
/** The maximum scale of a fitted chart, so that a small one is not blown up. */
const LARGEST_FIT = 1.15
/** The scale at which labels of 12 px are 11 px high. A larger chart is shown where it is lit, not as a whole. */
const LEGIBLE = 11 / 12
const MARGIN = 16
const KEY_STEP = 60

/** Moves and zooms a sheet within a box: by mouse, touch, wheel and keys. */
export class PanZoom {
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
