// swift-tools-version:5.7
// The library is looked for with pkg-config (swipr.pc of the package); it is not part of this package.
import PackageDescription

let package = Package(
    name: "swipr",
    products: [.library(name: "Swipr", targets: ["Swipr"])],
    targets: [
        .systemLibrary(name: "CSwipr", pkgConfig: "swipr"),
        .target(name: "Swipr", dependencies: ["CSwipr"]),
    ]
)
