// A Duplex with the methods of net.Socket that Node's HTTP client and server use.
import { Duplex } from 'node:stream'

export class SocketDuplex extends Duplex {
  readonly connecting = false
  bytesRead = 0
  bytesWritten = 0
  timeout = 0
  #timer: NodeJS.Timeout | undefined

  /** Emits `timeout` after this time without activity; 0 disables it. */
  setTimeout(ms: number, callback?: () => void): this {
    if (ms !== this.timeout) this.#stopTimer()
    if (ms > 0 && !this.destroyed) this.#startTimer(ms)
    if (callback && ms > 0) this.once('timeout', callback)
    else if (callback) this.off('timeout', callback)
    return this
  }

  setNoDelay(): this {
    return this
  }

  setKeepAlive(): this {
    return this
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }

  /** Ends the stream, and destroys it when everything is sent. */
  destroySoon(): void {
    if (this.writable) this.end()
    if (this.writableFinished) this.destroy()
    else this.once('finish', () => this.destroy())
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#stopTimer()
    done(error)
  }

  /** Restarts the idle timeout. */
  protected onActivity(): void {
    this.#timer?.refresh()
  }

  #startTimer(ms: number): void {
    this.timeout = ms
    if (this.#timer) this.#timer.refresh()
    else this.#timer = setTimeout(() => this.emit('timeout'), ms).unref()
  }

  #stopTimer(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.timeout = 0
  }
}
