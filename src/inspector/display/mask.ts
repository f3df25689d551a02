// Values of headers that authenticate somebody are masked in what is shown and exported.
import { type Header, MASK } from '../api.ts'
import { findHeader } from '../store/exchange.ts'

const MASKED = ['authorization', 'proxy-authorization', 'cookie', 'set-cookie']

export class HeaderMask {
  /** In lower case. */
  readonly names: readonly string[]
  readonly #names: ReadonlySet<string>

  constructor(others: readonly string[]) {
    this.names = [...new Set([...MASKED, ...others.map((name) => name.toLowerCase())])]
    this.#names = new Set(this.names)
  }

  hides(name: string): boolean {
    return this.#names.has(name.toLowerCase())
  }

  /** The value of the first header of the name, which is in lower case. */
  find(headers: readonly string[], name: string, isRevealed: boolean): string | undefined {
    const value = findHeader(headers, name)
    return value === undefined || isRevealed || !this.hides(name) ? value : MASK
  }

  /** `headers` alternates names and values. */
  describe(headers: readonly string[], isRevealed: boolean): Header[] {
    const described: Header[] = []
    for (let index = 0; index < headers.length; index += 2) {
      const [name = '', value = ''] = headers.slice(index, index + 2)
      if (isRevealed || !this.hides(name)) described.push({ name, value })
      else described.push({ name, value: MASK, masked: true })
    }
    return described
  }
}
