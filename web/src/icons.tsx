// Icons, drawn on a 24 × 24 grid.
import type { ReactNode } from 'react'

interface IconProps {
  size?: number
}

const strokeIcon = (shape: ReactNode) =>
  function Icon({ size = 18 }: IconProps) {
    return (
      <svg
        width={size}
        height={size}
        viewBox="0 0 24 24"
        fill="none"
        stroke="currentColor"
        strokeWidth={1.8}
        strokeLinecap="round"
        strokeLinejoin="round"
        aria-hidden="true"
      >
        {shape}
      </svg>
    )
  }

/** The logo: the arch of a mine entrance, an adit. */
export function Logo({ size = 28 }: IconProps) {
  return (
    <svg width={size} height={size} viewBox="0 0 32 32" aria-hidden="true">
      <path d="M4 28V16a12 12 0 0 1 24 0v12h-7V16a5 5 0 0 0-10 0v12z" fill="#e8b04a" />
    </svg>
  )
}

export const OverviewIcon = strokeIcon(<path d="M4 20v-8a8 8 0 0 1 16 0v8M4 20h16M12 20v-7" />)
export const TunnelIcon = strokeIcon(
  <path d="M5.5 11a6.5 6.5 0 0 1 13 0M3 17h18M6 14l-3 3 3 3M18 14l3 3-3 3" />,
)
export const LockIcon = strokeIcon(
  <>
    <rect x="5" y="11" width="14" height="9" rx="2" />
    <path d="M8 11V8a4 4 0 0 1 8 0v3" />
  </>,
)
export const SearchIcon = strokeIcon(
  <>
    <circle cx="11" cy="11" r="6" />
    <path d="m15.5 15.5 4.5 4.5" />
  </>,
)
export const SettingsIcon = strokeIcon(
  <>
    <path d="M4 7h9M17 7h3M4 17h3M11 17h9" />
    <circle cx="15" cy="7" r="2" />
    <circle cx="9" cy="17" r="2" />
  </>,
)
export const KeyIcon = strokeIcon(
  <>
    <circle cx="8" cy="15" r="4" />
    <path d="m11 12 8-8M16 7l3 3" />
  </>,
)
export const UsageIcon = strokeIcon(<path d="M4 20h16M7 16v-4M12 16V6M17 16V9" />)
export const UsersIcon = strokeIcon(
  <>
    <circle cx="9" cy="8" r="3.5" />
    <path d="M3 20a6 6 0 0 1 12 0M16 5a3.5 3.5 0 0 1 0 6.5M18 14.5a6 6 0 0 1 3 5.5" />
  </>,
)
export const LogIcon = strokeIcon(<path d="M8 6h12M8 12h12M8 18h12M4 6h.01M4 12h.01M4 18h.01" />)
export const WebhookIcon = strokeIcon(
  <>
    <circle cx="12" cy="7" r="3" />
    <circle cx="6" cy="17" r="3" />
    <circle cx="18" cy="17" r="3" />
    <path d="m10.5 9.6-3 5M13.5 9.6l3 5M9 17h6" />
  </>,
)
export const UserIcon = strokeIcon(
  <>
    <circle cx="12" cy="8" r="4" />
    <path d="M4.5 20.5a7.5 7.5 0 0 1 15 0" />
  </>,
)
export const CopyIcon = strokeIcon(
  <>
    <rect x="9" y="9" width="11" height="11" rx="2" />
    <path d="M5 15H4V5a1 1 0 0 1 1-1h10v1" />
  </>,
)
export const CheckIcon = strokeIcon(<path d="m5 12.5 4.5 4.5L19 7.5" />)
export const ChevronIcon = strokeIcon(<path d="m7 10 5 5 5-5" />)
export const PlusIcon = strokeIcon(<path d="M12 5v14M5 12h14" />)
export const DownloadIcon = strokeIcon(<path d="M12 4v11M7.5 11l4.5 4.5 4.5-4.5M5 20h14" />)
export const WarningIcon = strokeIcon(<path d="M12 9v5M12 17.5v.01M12 3.5 2.5 20h19z" />)
export const SignOutIcon = strokeIcon(
  <path d="M14 4H6a1 1 0 0 0-1 1v14a1 1 0 0 0 1 1h8M10 12h10M17 9l3 3-3 3" />,
)
export const BookIcon = strokeIcon(
  <path d="M5 4h12a2 2 0 0 1 2 2v14H7a2 2 0 0 1-2-2zM5 18a2 2 0 0 1 2-2h12" />,
)
export const SunIcon = strokeIcon(
  <>
    <circle cx="12" cy="12" r="4" />
    <path d="M12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2" />
    <path d="M5.3 5.3l1.4 1.4M17.3 17.3l1.4 1.4M5.3 18.7l1.4-1.4M17.3 6.7l1.4-1.4" />
  </>,
)
export const MoonIcon = strokeIcon(<path d="M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z" />)
export const ScreenIcon = strokeIcon(
  <>
    <rect x="3" y="4" width="18" height="12" rx="2" />
    <path d="M9 20h6M12 16v4" />
  </>,
)
export const ShieldIcon = strokeIcon(<path d="M12 3 5 6v5c0 5 3 8 7 10 4-2 7-5 7-10V6zM9 12l2 2 4-4" />)
export const ReplayIcon = strokeIcon(<path d="M19.5 12a7.5 7.5 0 1 1-2.4-5.5L19.5 9M19.5 4v5h-5" />)
export const EditIcon = strokeIcon(<path d="M4 20h4L19 9l-4-4L4 16zM13 7l4 4" />)
export const CompareIcon = strokeIcon(<path d="M4 5h6v14H4zM14 5h6v14h-6zM7 9v2M17 13v2" />)
export const MoreIcon = strokeIcon(<path d="M5 12h.01M12 12h.01M19 12h.01" />)
export const BackIcon = strokeIcon(<path d="M20 12H5M11 6l-6 6 6 6" />)
export const TrashIcon = strokeIcon(<path d="M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v5M14 11v5" />)
export const FilterIcon = strokeIcon(<path d="M4 6h16M7 12h10M10 18h4" />)
export const CloseIcon = strokeIcon(<path d="m6 6 12 12M18 6 6 18" />)
