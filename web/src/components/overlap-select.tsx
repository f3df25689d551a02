// How long the predecessor of a rotated secret stays in use.
import { NativeSelect } from '@mantine/core'
import type { Overlap } from '../../../src/lib/credentials/rotation.ts'

export const DEFAULT_OVERLAP: Overlap = '24h'

interface OverlapSelectProps {
  label: string
  description: string
  /** What happens without an overlap. */
  none: string
  value: Overlap
  onChange: (overlap: Overlap) => void
}

export function OverlapSelect({ label, description, none, value, onChange }: OverlapSelectProps) {
  const labels: Record<Overlap, string> = {
    none: `None: ${none}`,
    '1h': '1 hour',
    '24h': '24 hours',
    '7d': '7 days',
  }
  return (
    <NativeSelect
      label={label}
      description={description}
      data={Object.entries(labels).map(([value, label]) => ({ value, label }))}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value as Overlap)}
      inputWrapperOrder={['label', 'description', 'input', 'error']}
    />
  )
}
