/** Follows the bytes of a client frame by frame (RFC 6455 §5.2), to know whether a frame has begun that has not ended, and how much of a message has come. */
export class FrameWatch {
  #header: number[] = []
  #payloadLeft = 0
  #isData = false
  #isLast = false
  #messageBytes = 0

  /** How many bytes have come of a message that is not complete. */
  get messageBytes(): number {
    return this.#messageBytes
  }

  /** Takes the next bytes. Answers whether they end in the middle of a frame. */
  follow(bytes: Uint8Array): boolean {
    for (let at = 0; at < bytes.length; ) {
      const payload = Math.min(this.#payloadLeft, bytes.length - at)
      this.#payloadLeft -= payload
      at += payload
      if (this.#isData) this.#messageBytes += payload
      if (payload === 0) this.#takeHeader(Number(bytes[at++]))
      if (this.#isData && this.#isLast && !this.#isWithin) this.#messageBytes = 0
    }
    return this.#isWithin
  }

  get #isWithin(): boolean {
    return this.#payloadLeft > 0 || this.#header.length > 0
  }

  #takeHeader(byte: number): void {
    this.#header.push(byte)
    const [first = 0, second = -1] = this.#header
    if (second < 0) return
    const short = second & 0x7f
    const extended = short === 127 ? 8 : short === 126 ? 2 : 0
    const masked = second & 0x80 ? 4 : 0
    if (this.#header.length < 2 + extended + masked) return
    const digits = this.#header.slice(2, 2 + extended)
    this.#payloadLeft = extended === 0 ? short : digits.reduce((length, digit) => length * 256 + digit, 0)
    this.#header = []
    this.#isData = (first & 0x0f) < 8
    this.#isLast = (first & 0x80) > 0
  }
}
