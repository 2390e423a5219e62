#include "report/svg_to_png.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <memory>

namespace tidepool {
namespace {

// What is used of librsvg (2.52 and later), cairo and GLib, from their documentation. Their headers
// would bring the development packages of some forty libraries into every build.
constexpr const char* kLibrary = "librsvg-2.so.2";
constexpr const char* kPackage = "librsvg2-2";

struct GError {
  std::uint32_t domain;
  int code;
  char* message;
};
struct RsvgRectangle {
  double x;
  double y;
  double width;
  double height;
};
using Handle = void;   // RsvgHandle
using Surface = void;  // cairo_surface_t
using Drawing = void;  // cairo_t
constexpr int kArgb32 = 0;
constexpr int kSuccess = 0;  // cairo_status_t
using WriteBytes = int (*)(void* closure, const unsigned char* data, unsigned length);

/// The functions, found when made. The library stays loaded: GLib cannot be unloaded.
struct Librsvg {
  Handle* (*new_from_data)(const std::uint8_t*, std::size_t, GError**) = nullptr;
  int (*intrinsic_size)(Handle*, double*, double*) = nullptr;
  int (*render)(Handle*, Drawing*, const RsvgRectangle*, GError**) = nullptr;
  void (*unref)(void*) = nullptr;
  void (*free_error)(GError*) = nullptr;
  Surface* (*make_surface)(int, int, int) = nullptr;
  void (*destroy_surface)(Surface*) = nullptr;
  int (*write_png)(Surface*, WriteBytes, void*) = nullptr;
  Drawing* (*make_drawing)(Surface*) = nullptr;
  void (*destroy_drawing)(Drawing*) = nullptr;
  int (*status)(Drawing*) = nullptr;
  std::string why_not;  ///< empty: all are there

  Librsvg() {
    void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* const reason = ::dlerror();
      why_not = reason == nullptr ? kLibrary : reason;
      return;
    }
    // cairo and GLib are what librsvg is linked with: its handle finds their symbols too.
    const auto find = [&](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
      if (function == nullptr && why_not.empty()) why_not = fmt::format("it lacks {}", name);
    };
    find(new_from_data, "rsvg_handle_new_from_data");
    find(intrinsic_size, "rsvg_handle_get_intrinsic_size_in_pixels");
    find(render, "rsvg_handle_render_document");
    find(unref, "g_object_unref");
    find(free_error, "g_error_free");
    find(make_surface, "cairo_image_surface_create");
    find(destroy_surface, "cairo_surface_destroy");
    find(write_png, "cairo_surface_write_to_png_stream");
    find(make_drawing, "cairo_create");
    find(destroy_drawing, "cairo_destroy");
    find(status, "cairo_status");
  }
};

const Librsvg& librsvg() {
  static const Librsvg library;
  return library;
}

tl::unexpected<Error> cannot_draw(const Librsvg& lib, GError* error) {
  const std::string reason = error != nullptr ? error->message : "out of memory";
  if (error != nullptr) lib.free_error(error);
  return fail(ErrorCode::runtime, fmt::format("cannot draw the picture: {}", reason));
}

extern "C" int append_bytes(void* closure, const unsigned char* data, unsigned length) {
  static_cast<std::string*>(closure)->append(reinterpret_cast<const char*>(data), length);
  return kSuccess;
}

}  // namespace

Result<void> check_png_library() {
  const Librsvg& lib = librsvg();
  if (lib.why_not.empty()) return {};
  return fail(ErrorCode::runtime,
              fmt::format("PNG needs librsvg (Debian package {}): {}", kPackage, lib.why_not));
}

Result<std::string> svg_to_png(std::string_view svg, double scale) {
  if (auto there = check_png_library(); !there) return fail(there.error());
  const Librsvg& lib = librsvg();
  GError* error = nullptr;
  const std::unique_ptr<Handle, void (*)(void*)> handle(
      lib.new_from_data(reinterpret_cast<const std::uint8_t*>(svg.data()), svg.size(), &error),
      lib.unref);
  double width = 0;
  double height = 0;
  if (handle == nullptr) return cannot_draw(lib, error);
  if (lib.intrinsic_size(handle.get(), &width, &height) == 0) {
    return fail(ErrorCode::runtime, "cannot draw the picture: it has no size in pixels");
  }
  const RsvgRectangle page{0, 0, std::ceil(width * scale), std::ceil(height * scale)};
  const std::unique_ptr<Surface, void (*)(Surface*)> surface(
      lib.make_surface(kArgb32, static_cast<int>(page.width), static_cast<int>(page.height)),
      lib.destroy_surface);
  const std::unique_ptr<Drawing, void (*)(Drawing*)> drawing(lib.make_drawing(surface.get()),
                                                             lib.destroy_drawing);
  if (lib.status(drawing.get()) != kSuccess ||
      lib.render(handle.get(), drawing.get(), &page, &error) == 0) {
    return cannot_draw(lib, error);
  }
  std::string png;
  if (lib.write_png(surface.get(), append_bytes, &png) != kSuccess) {
    return cannot_draw(lib, nullptr);
  }
  return png;
}

}  // namespace tidepool
