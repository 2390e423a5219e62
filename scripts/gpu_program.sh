#!/usr/bin/env bash
# The programs in bin/ of the bundle: each runs the one of its name for this machine's driver.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/gpu_environment.sh
. "$here/gpu_environment.sh"
exec "$here/$TIDEPOOL_BUILD/$(basename "${BASH_SOURCE[0]}")" "$@"
