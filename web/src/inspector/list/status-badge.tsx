import { Badge, VisuallyHidden } from '@mantine/core'
import type { ExchangeSummary } from '../../../../src/inspector/api.ts'
import { describeStatus } from './format.ts'

export function StatusBadge({ request, className = '' }: { request: ExchangeSummary; className?: string }) {
  const { text, color, label } = describeStatus(request)
  return (
    <Badge color={color} miw={46} flex="none" title={label} className={`tabular ${className}`}>
      <span aria-hidden>{text}</span>
      <VisuallyHidden>{label}</VisuallyHidden>
    </Badge>
  )
}
