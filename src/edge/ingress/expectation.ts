// A visitor that sends `Expect: 100-continue` gets 100 Continue when the local server sends it. Until then
// the body is paused, so that the visitor does not count as slow. It may also send the body without waiting.
import type { IncomingMessage, ServerResponse } from 'node:http'

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n'

export class Expectation {
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #onBody: () => void
  #isMet = false
  #isBodyPaused = true

  /** `onBody` is called once, before the body is read. */
  constructor(request: IncomingMessage, response: ServerResponse, onBody: () => void) {
    this.#request = request
    this.#response = response
    this.#onBody = onBody
    request.on('readable', this.#resumeBody)
  }

  /** Sends 100 Continue, but not a second time. Returns the number of bytes sent. */
  continue(): number {
    if (this.#isMet) return 0
    this.#isMet = true
    // Without this method, Node closes the connection after the response.
    this.#response.writeContinue()
    this.#resumeBody()
    return CONTINUE.length
  }

  /** Stops waiting for the body. */
  close(): void {
    this.#isBodyPaused = false
    this.#request.off('readable', this.#resumeBody)
  }

  readonly #resumeBody = () => {
    if (!this.#isBodyPaused) return
    this.close()
    this.#onBody()
    this.#request.resume()
  }
}
