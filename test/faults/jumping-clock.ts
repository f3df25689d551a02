// Loaded before Adit: at each SIGUSR2 the clock of the process jumps ahead, back, behind, and back again.
// Less than the 5 minutes that usage may be ahead of a node.
const STEP_MS = 4 * 60_000
const JUMPS_MS = [STEP_MS, -STEP_MS, -STEP_MS, STEP_MS]

const { now } = Date
let jumps = 0
let offsetMs = 0

class JumpingDate extends Date {
  constructor(...given: [] | [number]) {
    super(...((given.length === 0 ? [JumpingDate.now()] : given) as [number]))
  }

  static override now = () => now() + offsetMs
}

globalThis.Date = JumpingDate as DateConstructor
process.on('SIGUSR2', () => {
  offsetMs += JUMPS_MS[jumps % JUMPS_MS.length] as number
  jumps += 1
})
